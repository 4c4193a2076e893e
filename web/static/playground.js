// The playground shows an answer word by word. Without this it shows it whole.
(() => {
  const form = document.getElementById("play-form"), place = document.getElementById("played");
  if (!form || !place || !window.ReadableStream) return;
  const buttons = () => form.querySelectorAll("button");

  // Server-sent events of a POST, which EventSource does not make.
  async function* events(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      rest += value;
      for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
        const [event, data] = rest.slice(0, end).split("\n");
        yield [event.slice("event: ".length), JSON.parse(data.slice("data: ".length))];
      }
    }
  }

  const chosen = (key) => {
    const select = form.elements.key;
    if (select.value === key) return;
    const option = [...select.options].find((o) => o.value === key) || new Option(select.selectedOptions[0].textContent.replace("a new test key for", "playground,"), key);
    select.selectedOptions[0].replaceWith(option);
    select.value = key;
  };

  const send = async (whole) => {
    const answer = await fetch(form.dataset.stream, { method: "POST", body: new URLSearchParams(new FormData(form)) });
    if (!answer.ok || !answer.headers.get("Content-Type")?.startsWith("text/event-stream")) return whole();
    place.replaceChildren(document.getElementById("playing").content.cloneNode(true));
    if (place.getBoundingClientRect().top > innerHeight * 0.8) place.scrollIntoView();
    for await (const [event, data] of events(answer.body)) {
      if (event === "key") chosen(data);
      if (event === "text") place.querySelector("[data-text]").append(data);
      if (event === "failed") place.querySelector("[data-text]").textContent = data;
      if (event === "done") place.innerHTML = data;
    }
    place.querySelector("[aria-busy]")?.removeAttribute("aria-busy");
  };

  form.addEventListener("submit", async (event) => {
    if (event.submitter?.value === "burst") return;
    event.preventDefault();
    buttons().forEach((b) => { b.disabled = true; });
    try {
      await send(() => form.submit());
    } catch {
      place.querySelector("[data-text]")?.append(" The connection broke here. The call may have gone on; the requests tell.");
    } finally {
      buttons().forEach((b) => { b.disabled = false; });
    }
  });
})();
