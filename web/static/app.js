// What pages offer beyond reading. Everything reads without it.
(() => {
  const root = document.documentElement;
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  const byID = (id) => document.getElementById(id);

  const did = (button) => {
    const label = button.getAttribute("aria-label");
    button.classList.add("did");
    button.setAttribute("aria-label", "Copied");
    setTimeout(() => {
      button.classList.remove("did");
      if (label) button.setAttribute("aria-label", label); else button.removeAttribute("aria-label");
    }, 1600);
  };

  const acts = {
    themeSwitch() {
      root.dataset.theme = dark() ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch {}
    },
    print() { window.print(); },
    async copy(button) {
      try { await navigator.clipboard.writeText(byID(button.dataset.copy).textContent); } catch { return; }
      did(button);
    },
    download(button) {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([byID(button.dataset.download).textContent + "\n"], { type: "text/plain" }));
      link.download = button.dataset.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    },
  };

  document.addEventListener("click", (event) => {
    event.target.closest("[popover] a")?.closest("[popover]").hidePopover?.();
    const keep = event.target.closest("dialog [data-close]");
    if (keep) { event.preventDefault(); keep.closest("dialog").close(); }
    const button = event.target.closest("button");
    for (const name in acts) if (button && name in button.dataset) acts[name](button);
  });

  // A button may wait until a name is typed as it stands, or a box is ticked.
  const arm = (field) => {
    const button = byID(field.dataset.arms);
    if (button) button.disabled = field.type === "checkbox" ? !field.checked : field.value !== field.dataset.word;
  };
  const armAll = (within) => within.querySelectorAll("[data-arms]").forEach(arm);
  document.addEventListener("input", (event) => { if (event.target.dataset.arms) arm(event.target); });
  armAll(document);

  // A secret that is shown once is not left behind by accident, and a page that
  // the browser brings back does not show it again.
  const unsaved = () => document.querySelector("input[data-once]:not(:checked)");
  addEventListener("beforeunload", (event) => { if (unsaved()) event.preventDefault(); });
  addEventListener("pageshow", (event) => {
    const once = document.querySelector("input[data-once]");
    if (event.persisted && once) location.replace(once.dataset.once);
  });
  addEventListener("pagehide", () => document.querySelectorAll("[data-wipe]").forEach((e) => { e.textContent = ""; }));

  // What was done is said once: not again after a reload.
  if (document.querySelector(".toast")) {
    const url = new URL(location.href);
    url.searchParams.delete("done");
    history.replaceState(null, "", url);
  }

  // A dialog that was fetched is shown, and gone once it is closed.
  document.addEventListener("htmx:afterSwap", (event) => {
    const dialog = event.target.querySelector?.("dialog.dlg");
    if (!dialog) return;
    armAll(dialog);
    dialog.addEventListener("close", () => dialog.remove());
    dialog.showModal();
  });
  // A part that fails may say so in its own place; a link whose part fails leads
  // to the page instead, which tells more.
  document.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, target, elt } = event.detail;
    if (xhr.status < 400) return;
    if (target?.matches(".tile")) event.detail.shouldSwap = true;
    else if (elt?.href && !elt.closest(".tile")) location.assign(elt.href);
  });

  // A form that is being filled in outlives its session: it is not led away.
  document.addEventListener("htmx:responseError", (event) => {
    const { xhr, elt } = event.detail, wrap = document.querySelector(".wrap");
    if (xhr.status !== 401 || !wrap || elt.closest("dialog") || byID("session-ended")) return;
    const note = document.createElement("div"), title = document.createElement("b"), text = document.createElement("span"), link = document.createElement("a");
    Object.assign(note, { id: "session-ended", className: "note warn" }).setAttribute("role", "alert");
    title.textContent = "Your session has ended. What you typed is still here.";
    Object.assign(link, { href: "/sign-in?ended", target: "_blank", textContent: "Sign in in a new tab" });
    text.append(link, ", then go on on this page.");
    note.append(title, text);
    wrap.prepend(note);
  });

  // The zone of a new organisation is most often the browser's.
  for (const zone of document.querySelectorAll("input.zone")) {
    if (!zone.value) zone.value = Intl.DateTimeFormat().resolvedOptions().timeZone || "";
  }
})();
