// The palette: Ctrl K or ⌘K from anywhere, and / into the search of the page.
(() => {
  const dialog = document.getElementById("palette"), field = dialog?.querySelector("input");
  if (!dialog?.showModal) return;
  const found = document.getElementById("palette-found"), said = document.getElementById("palette-said");
  const choices = () => [...found.querySelectorAll("a, button")];
  const answered = () => found.querySelector("[data-for]")?.dataset.for === field.value.trim();
  let waiting = false; // Enter came before its results

  const open = () => {
    if (document.querySelector("dialog[open]")) return;
    document.querySelector(":popover-open")?.hidePopover();
    dialog.showModal();
    field.select();
    htmx.trigger(field, "look");
  };
  const plain = (event) => !event.ctrlKey && !event.metaKey && !event.altKey;
  const typing = (event) => event.target.closest?.("input, textarea, select, [contenteditable]");

  if (/Mac|iPhone|iPad/.test(navigator.platform)) document.querySelectorAll("[data-mod]").forEach((e) => { e.textContent = "⌘K"; });
  document.addEventListener("click", (event) => {
    if (!event.target.closest?.("[data-palette]") || !plain(event)) return;
    event.preventDefault();
    open();
  });
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey && event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (dialog.open) dialog.close(); else open();
    } else if (event.key === "/" && plain(event) && !typing(event) && !document.querySelector("dialog[open]")) {
      event.preventDefault();
      const own = document.querySelector("main input[type=search]");
      if (own) own.select(), own.focus(); else open();
    }
  });

  dialog.addEventListener("keydown", (event) => {
    const list = choices(), at = list.indexOf(document.activeElement);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const to = at + (event.key === "ArrowDown" ? 1 : -1);
      if (to < 0) field.focus(); else list[Math.min(to, list.length - 1)]?.focus();
      // The first is marked already while one types, so the next key leads on.
      if (at < 0 && event.key === "ArrowDown" && document.activeElement === list[0] && list[1]) list[1].focus();
    } else if (event.key === "Enter" && event.target === field) {
      event.preventDefault();
      if (answered()) list[0]?.click(); else waiting = true;
    } else if (event.key.length === 1 && event.key !== " " && plain(event) && at >= 0) {
      field.focus();
    }
  });
  dialog.addEventListener("click", (event) => {
    if (event.target === dialog || event.target.closest("[data-theme-switch]")) dialog.close();
  });
  dialog.addEventListener("close", () => { waiting = false; });
  addEventListener("pagehide", () => dialog.close());

  found.addEventListener("htmx:afterSwap", () => {
    said.textContent = found.querySelector("[data-said]")?.dataset.said ?? "";
    if (!waiting || !answered()) return;
    waiting = false;
    choices()[0]?.click();
  });
  for (const failed of ["htmx:responseError", "htmx:sendError"]) {
    field.addEventListener(failed, (event) => {
      const ended = event.detail.xhr?.status === 401;
      found.textContent = said.textContent = ended ? "Your session has ended. Nothing on the page behind is lost: sign in in a new tab, then go on here." : "The search could not be reached. Try again in a moment.";
    });
  }
})();
