// What is wrong with the looks of the page as it stands, as a list of sentences: texts whose contrast to what is behind them is below 4.5 : 1
// (WCAG 2.2 §1.4.3), fields whose edge is below 3 : 1 (§1.4.11), whatever is wider than the screen or its card, or cut off, targets of less than 40 px (§2.5.8 wants 24, and leaves links within sentences out), and controls without a name.
(() => {
  const faults = [], canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 }).getContext("2d");
  const dialog = document.querySelector("dialog:modal");
  const colour = (text) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = text;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const light = (c) => c.slice(0, 3).map((x) => ((x /= 255) <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4))
    .reduce((sum, x, i) => sum + x * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (e) => {
    for (; e; e = e.parentElement) { const c = colour(getComputedStyle(e).backgroundColor); if (c[3]) return c; }
    return [255, 255, 255];
  };
  const name = (e) => e.id || e.className || e.tagName;
  for (const e of (dialog ?? document).querySelectorAll("body *")) {
    if (!e.checkVisibility() || e.closest(".unseen, svg")) continue;
    const box = e.getBoundingClientRect();
    if (e.matches("button, select, input, a")) {
      const card = e.closest(".card, dialog")?.getBoundingClientRect();
      if (card && (box.right > card.right + 1 || box.left < card.left - 1)) faults.push(`${name(e)}: sticks out of its card`);
      const label = e.ariaLabel || e.textContent.trim() || [...(e.labels ?? [])].map((one) => one.textContent).join("").trim();
      if (!label) faults.push(`${name(e)}: no name`);
      const target = e.type === "checkbox" ? e.closest("label").getBoundingClientRect() : box;
      if (Math.min(target.width, target.height) < 40 && getComputedStyle(e).display !== "inline") faults.push(`${name(e)}: a target of ${Math.round(target.width)} × ${Math.round(target.height)} px`);
      if (e.tagName === "BUTTON" && e.scrollWidth > e.clientWidth + 1) faults.push(`${name(e)}: its words are cut off`);
    }
    if (e.matches("select, input:not([type=checkbox], [type=range])")) {
      const { borderTopColor, borderTopWidth } = getComputedStyle(e), edge = colour(borderTopColor), [c, d] = [light(edge), light(behind(e.parentElement))];
      const contrast = (Math.max(c, d) + 0.05) / (Math.min(c, d) + 0.05);
      if (!edge[3] || borderTopWidth === "0px" || contrast < 3) faults.push(`${name(e)}: an edge of ${edge[3] ? contrast.toFixed(2) : "nothing"}`);
    }
    if (e.closest(":disabled") || ![...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim())) continue;
    const [a, b] = [light(colour(getComputedStyle(e).color)), light(behind(e))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faults.push(`${name(e)}: contrast ${contrast.toFixed(2)}`);
    if (box.right > innerWidth + 1 || box.left < -1) faults.push(`${name(e)}: beyond the edge`);
  }
  if (document.documentElement.scrollWidth > innerWidth) faults.push("the page scrolls sideways");
  return faults;
})()
