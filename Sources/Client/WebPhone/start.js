// A script that lacks one of its parts never runs, and a browser drops what it loads when its network changes: then the page is loaded again,
// once the gateway can be reached. No module, and before all else, so that it is there.
{
  let isAsked = false;
  const again = () => {
    const { loads = 0 } = history.state ?? {}; // outlives the reload; the page that runs clears it
    document.getElementById("status").textContent = "Not loaded. Trying again…";
    setTimeout(async () => {
      history.replaceState({ loads: loads + 1 }, "");
      const answer = await fetch("phone.js", { cache: "reload" }).catch(() => null);
      if (answer?.ok) location.reload(); else again();
    }, Math.min(30_000, 500 * 2 ** loads));
  };
  addEventListener("error", ({ target }) => {
    if (isAsked || !(target instanceof HTMLScriptElement)) return;
    isAsked = true;
    again();
  }, true);
}
