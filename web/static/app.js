// What pages offer beyond reading. Everything reads without it.
(() => {
  const root = document.documentElement;
  const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;

  document.addEventListener("click", async (event) => {
    event.target.closest("[popover] a")?.closest("[popover]").hidePopover?.();
    const button = event.target.closest("button");
    if (button?.hasAttribute("data-theme-switch")) {
      root.dataset.theme = dark() ? "light" : "dark";
      try { localStorage.setItem("theme", root.dataset.theme); } catch {}
    }
    if (button?.hasAttribute("data-copy")) {
      try { await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent); } catch { return; }
      const label = button.getAttribute("aria-label");
      button.classList.add("did");
      button.setAttribute("aria-label", "Copied");
      setTimeout(() => { button.classList.remove("did"); button.setAttribute("aria-label", label); }, 1600);
    }
  });
})();
