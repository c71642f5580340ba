"use strict";
// Draws the charts in the page's own colours, and again when the reader changes between light and dark.
(() => {
  const source = document.getElementById("charts").textContent;
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

  // A chart names the page's colours as "--ink".
  function charts() {
    const style = getComputedStyle(document.documentElement);
    const resolve = (key, value) =>
      typeof value === "string" && /^--[a-z0-9-]+$/.test(value) ? style.getPropertyValue(value).trim() || value : value;
    return JSON.parse(source, resolve);
  }

  function draw() {
    const config = looks();
    const specs = charts();
    return Promise.all(
      [...document.querySelectorAll("[data-chart]")].map((place) =>
        window.vegaEmbed(place, specs[place.dataset.chart], { actions: false, renderer: "svg", config }),
      ),
    );
  }

  // Folded tables are part of a printed report.
  window.addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details")) folded.open = true;
  });
  dark.addEventListener("change", draw);
  draw().then(
    () => document.documentElement.setAttribute("data-charts", "drawn"),
    (error) => console.error(error),
  );
})();
