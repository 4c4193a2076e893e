// Pages that are read: a choice is sent as it is made, and what moves is read
// again, tile by tile.
(() => {
  document.addEventListener("change", (event) => {
    if (event.target.matches?.("[data-send]")) event.target.form.requestSubmit();
  });

  // What is not filtered by does not stand in the address.
  document.addEventListener("formdata", (event) => {
    if (event.target.method === "get") for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
  });

  // What a tile asks by itself is no use of the session. One that somebody has
  // opened or works in is left alone until it is not, and one that nobody can see
  // waits.
  const itself = (event) => event.target.matches?.(".tile") && event.detail.triggeringEvent?.type !== "click";
  document.addEventListener("htmx:configRequest", (event) => {
    if (itself(event)) event.detail.headers["Weir-By-Itself"] = "1";
  });
  document.addEventListener("htmx:beforeRequest", (event) => {
    const asked = event.detail.requestConfig?.headers?.["Weir-By-Itself"];
    if (asked && (document.hidden || event.target.matches(":focus-within, :has(details[open]), :hover:has(svg:hover)"))) event.preventDefault();
  });

  // The server says that something moved, never what: the tiles ask for that.
  const live = document.querySelector("[data-live]");
  if (!live) return;
  const say = (on) => { document.querySelectorAll("[data-live]").forEach((e) => { e.classList.toggle("live", on); e.textContent = on ? "Live" : "Not live"; }); };
  let source;
  const listen = () => {
    source = new EventSource(live.dataset.live);
    source.addEventListener("open", () => say(true));
    source.addEventListener("moved", () => { if (!document.hidden) htmx.trigger(document.body, "moved"); else late = true; });
    source.addEventListener("ended", () => { source.close(); say(false); });
    source.addEventListener("error", () => say(false));
  };
  let late = false;
  document.addEventListener("visibilitychange", () => { if (!document.hidden && late) { late = false; htmx.trigger(document.body, "moved"); } });
  document.addEventListener("htmx:afterSwap", () => { if (source?.readyState === EventSource.OPEN) say(true); });
  addEventListener("pagehide", () => source?.close());
  addEventListener("pageshow", (event) => { if (event.persisted) listen(); });
  listen();
})();
