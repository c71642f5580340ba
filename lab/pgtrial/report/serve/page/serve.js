"use strict";
// Searches while the reader types, and updates the page of a running study. Without this script, the reader submits the form and reloads the page.
(() => {
  const form = document.getElementById("search");
  let latest = null;

  async function search() {
    latest?.abort();
    latest = new AbortController();
    const address = `${form.action}?${new URLSearchParams(new FormData(form))}`;
    try {
      const answer = await fetch(address, { signal: latest.signal });
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.getElementById("found").replaceChildren(...page.getElementById("found").childNodes);
      history.replaceState(null, "", address);
    } catch (error) {
      if (error.name !== "AbortError") form.submit();
    }
  }

  function follow(place) {
    const source = new EventSource(place.dataset.live);
    for (const part of place.querySelectorAll("[data-part]")) {
      source.addEventListener(part.dataset.part, (event) => {
        part.innerHTML = JSON.parse(event.data);
      });
    }
    source.addEventListener("changed", () => {
      source.close();
      location.reload();
    });
    window.addEventListener("pagehide", () => source.close());
  }

  form?.addEventListener("input", search);
  const place = document.getElementById("live");
  if (place) follow(place);
})();
