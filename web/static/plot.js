// The chart of the usage page, with a pointer. It draws what the drawing that it
// replaces drew, from the same figures.
(() => {
  const figure = document.querySelector("figure[data-plot]");
  if (!figure || !figure.dataset.plot || typeof uPlot === "undefined") return;
  const data = JSON.parse(figure.dataset.plot), n = data.t.length;
  if (!n || !data.series.length) return;
  const paint = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(${name})`;
    figure.append(probe);
    const colour = getComputedStyle(probe).color;
    probe.remove();
    return colour;
  };
  const brief = (v) => {
    for (const [size, unit] of [[1e9, " G"], [1e6, " M"]]) if (v >= size) return Math.floor(v / size * 10) / 10 + unit;
    return v >= 1e4 ? Math.floor(v / 100) / 10 + " k" : v.toLocaleString("en-US");
  };

  // One series on the other: what is drawn first reaches from 0 to the top.
  const stacked = data.series.map(() => new Array(n));
  for (let i = 0; i < n; i++) data.series.reduce((sum, s, k) => stacked[k][i] = sum + s.v[i], 0);
  const columns = [[...Array(n).keys()], ...stacked.toReversed()];

  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  const line = (text, k, said) => {
    const row = document.createElement("div");
    if (k >= 0) row.append(document.createElement("i")), row.firstChild.className = "b" + (k + 1);
    row.append(text);
    if (said) { const b = document.createElement("b"); b.textContent = said; row.append(b); }
    return row;
  };
  const point = (u) => {
    const i = u.cursor.idx;
    tip.hidden = i == null;
    if (tip.hidden) return;
    tip.replaceChildren(line(data.words[i], -1), ...data.series.map((s, k) => s.said[i] ? line(s.name, k, s.said[i]) : null).filter(Boolean).reverse());
    const x = u.valToPos(i, "x"), left = x > u.over.clientWidth / 2;
    tip.style.transform = `translate(${Math.round(left ? x - tip.offsetWidth - 18 : x + 18)}px, 8px)`;
    u.over.style.cursor = data.hrefs[i] ? "pointer" : "";
  };

  let chart;
  const draw = () => {
    chart?.destroy();
    const ink = paint("--ink-3"), rule = paint("--line"), font = "500 11px " + getComputedStyle(figure).getPropertyValue("--mono");
    const every = figure.clientWidth < 480 ? 2 : 1, marks = data.marks.filter((_, i) => i % every === 0);
    figure.classList.add("plotted");
    chart = new uPlot({
      width: figure.clientWidth, height: 236, padding: [8, 0, 0, figure.clientWidth < 900 ? 16 : 0], legend: { show: false },
      cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
      scales: { x: { time: false, range: [-0.5, n - 0.5] }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.04 : 4] } },
      axes: [
        { stroke: ink, font, size: 22, gap: 4, grid: { show: false }, ticks: { show: false }, border: { show: true, stroke: paint("--ink"), width: 1 },
          splits: () => marks.map((m) => m.i), values: () => marks.map((m) => m.w) },
        { side: 1, stroke: ink, font, size: 64, gap: 4, grid: { stroke: rule, width: 1 }, ticks: { show: false }, values: (_, all) => all.map(brief) },
      ],
      series: [{}, ...data.series.map((s, k) => ({ label: s.name, fill: paint("--m" + (k + 1)), width: 0, points: { show: false }, paths: uPlot.paths.bars({ size: [n > 60 ? 0.94 : 0.78, 120] }) })).reverse()],
      hooks: { setCursor: [point] },
    }, columns, figure);
    chart.root.setAttribute("aria-hidden", "true");
    chart.over.append(tip);
    chart.over.addEventListener("click", () => { const to = data.hrefs[chart.cursor.idx]; if (to) location.assign(to); });
  };
  draw();
  new ResizeObserver(() => { if (figure.clientWidth && figure.clientWidth !== chart.width) chart.setSize({ width: figure.clientWidth, height: 236 }); }).observe(figure);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  new MutationObserver(draw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
})();
