"use strict";
// Draws the charts in the page's own colours, and again when the reader changes between light and dark.
(() => {
  const element = document.getElementById("charts");
  const source = element.type === "application/json" ? element.textContent : unpacked(element.textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");

  function looks() {
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const ink = colour("ink");
    const soft = colour("soft");
    const line = colour("line");
    const font = getComputedStyle(document.body).fontFamily;
    return {
      background: "transparent",
      font,
      view: { stroke: null },
      axis: {
        labelColor: soft, titleColor: soft, gridColor: line, domainColor: line, tickColor: line,
        labelFontSize: 12, titleFontSize: 12, titleFontWeight: 500, titlePadding: 10, labelPadding: 6,
      },
      axisY: { domain: false, ticks: false },
      legend: {
        orient: "top", direction: "horizontal", labelColor: ink, titleColor: soft, labelFontSize: 12,
        symbolSize: 90, symbolStrokeWidth: 2, symbolOpacity: 1, offset: 12, columnPadding: 16,
      },
      range: { category: [1, 2, 3, 4, 5, 6].map((n) => colour(`arm-${n}`)) },
    };
  }

  // Long texts are stored in the page as gzip in base64.
  function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
    return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
  }

  // Charts name the colours of the page by their CSS variables, such as "--ink".
  async function charts() {
    const style = getComputedStyle(document.documentElement);
    const resolve = (key, value) =>
      typeof value === "string" && /^--[a-z0-9-]+$/.test(value) ? style.getPropertyValue(value).trim() || value : value;
    return JSON.parse(await source, resolve);
  }

  async function draw() {
    const config = looks();
    const specs = await charts();
    return Promise.all(
      [...document.querySelectorAll("[data-chart]")].map((place) =>
        window.vegaEmbed(place, specs[place.dataset.chart], { actions: false, renderer: "svg", config }),
      ),
    );
  }

  // The rows of a long table are inserted when the reader unfolds it, because a page with all rows is slow to open.
  const fillings = [...document.querySelectorAll("tbody[data-packed]")].map(async (body) => {
    const rows = await unpacked(body.dataset.packed);
    const fill = () => {
      if (body.dataset.packed) body.innerHTML = rows;
      delete body.dataset.packed;
    };
    const folded = body.closest("details");
    if (folded.open) fill();
    folded.addEventListener("toggle", fill, { once: true });
    return fill;
  });

  // A printed report contains the folded tables too.
  let fills = [];
  Promise.all(fillings).then((ready) => (fills = ready));
  window.addEventListener("beforeprint", () => {
    for (const fill of fills) fill();
    for (const folded of document.querySelectorAll("details")) folded.open = true;
  });
  dark.addEventListener("change", draw);
  draw().then(
    () => document.documentElement.setAttribute("data-charts", "drawn"),
    (error) => console.error(error),
  );
})();
