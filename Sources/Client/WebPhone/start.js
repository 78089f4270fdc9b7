// A script that lacks one of its parts never runs, and a browser drops what it loads when its network changes: then the page is loaded again,
// once the gateway can be reached. No module, and before all else, so that it is there.
{
  // before there is a table of texts: in the first of these languages that the user has
  const texts = {
    en: ["Loading…", "Not loaded. Trying again…"], de: ["Wird geladen …", "Nicht geladen. Neuer Versuch …"],
    fr: ["Chargement…", "Page non chargée. Nouvel essai…"], es: ["Cargando…", "No se ha cargado. Reintentando…"],
  };
  const language = navigator.languages.map((tag) => tag.toLowerCase().split("-")[0]).find((one) => Object.hasOwn(texts, one)) ?? "en";
  const say = (number) => { document.getElementById("status").textContent = texts[language][number]; };
  say(0);
  let isAsked = false;
  const again = () => {
    const { loads = 0 } = history.state ?? {}; // outlives the reload; the page that runs clears it
    say(1);
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
