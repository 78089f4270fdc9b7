import AppServer

/// The page of the admin port, `/`: trunks, live calls, the last hour, and what is wrong now. It holds no data itself and asks `/v1/trunks`,
/// `/v1/calls`, `/v1/hour` and `/readyz` every two seconds, with the token that an operator types where one is set.
enum StatusPage {
  /// Its own script and style alone run, and it talks to nobody else.
  static let answer = AdminResponse(
    200, contentType: "text/html; charset=utf-8",
    headers: [
      (
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'"
      ),
      ("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"),
    ], body: Array(html.utf8))

  private static let html = """
    <!doctype html>
    <html lang="en">
    <meta charset="utf-8">
    <meta name="viewport" content="width=device-width">
    <title>Trunkline</title>
    <style>
      :root { color-scheme: light dark; --line: #8884; --soft: #666; --good: #1a7f37; --bad: #cf222e; --bar: #0969da; }
      @media (prefers-color-scheme: dark) { :root { --soft: #9aa; --good: #3fb950; --bad: #f85149; --bar: #58a6ff; } }
      body { font: 15px/1.45 system-ui, sans-serif; max-width: 70rem; margin: 0 auto; padding: 1rem; background: Canvas; color: CanvasText; }
      h1 { font-size: 1.2rem; margin: 0 0 .8rem; } h2 { font-size: 1rem; margin: 1.4rem 0 .4rem; }
      .scroll { overflow-x: auto; }
      table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
      th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid var(--line); white-space: nowrap; }
      th { font-weight: 550; color: var(--soft); font-size: .85rem; }
      .good { color: var(--good); } .bad { color: var(--bad); } .soft { color: var(--soft); }
      #wrong li:not(.soft) { color: var(--bad); } ul { margin: .2rem 0; padding-left: 1.2rem; }
      svg { width: 100%; height: 4rem; display: block; } rect { fill: var(--bar); }
      input, button { font: inherit; padding: .3rem .6rem; } :focus-visible { outline: 3px solid var(--bar); outline-offset: 2px; }
    </style>
    <h1>Trunkline <span id="state" role="status" class="soft">asking…</span></h1>
    <form id="login" hidden><label>Token <input id="token" type="password" autocomplete="current-password"></label> <button>Show</button></form>
    <section aria-labelledby="w"><h2 id="w">Wrong now</h2><ul id="wrong"></ul></section>
    <section aria-labelledby="t"><h2 id="t">Trunks</h2><div class="scroll" tabindex="0"><table id="trunks"></table></div></section>
    <section aria-labelledby="c"><h2 id="c">Calls now</h2><div class="scroll" tabindex="0"><table id="calls"></table></div></section>
    <section aria-labelledby="h"><h2 id="h">Last hour</h2><p id="hour"></p><svg id="minutes" viewBox="0 0 600 60" preserveAspectRatio="none"
      role="img" aria-labelledby="h"></svg><div class="scroll" tabindex="0"><table id="reasons"></table></div></section>
    <script>
      const $ = id => document.getElementById(id);
      let token = sessionStorage.getItem("token");
      const ask = async path => {
        const answer = await fetch(path, { headers: token ? { Authorization: "Bearer " + token } : {} });
        if (answer.status == 401) throw "login";
        const value = await answer.json();
        // /readyz says why it is not ready with a 503 of its own
        if ((answer.headers.get("Content-Type") || "").startsWith("application/problem+json")) throw String(value.detail);
        return value;
      };
      // Text alone goes into the page: names and numbers come from the network.
      const row = (cells, name = "td") => {
        const tr = document.createElement("tr");
        for (const cell of cells) {
          const td = document.createElement(name), [text, kind] = Array.isArray(cell) ? cell : [cell];
          td.textContent = text; if (kind) td.className = kind; tr.append(td);
        }
        return tr;
      };
      const table = (id, head, rows, none) => $(id).replaceChildren(...rows.length ? [row(head, "th"), ...rows.map(cells => row(cells))] : [row([[none, "soft"]])]);
      const since = ms => { const s = Math.max(0, Math.round((Date.now() - ms) / 1000)); return s < 60 ? s + " s" : Math.floor(s / 60) + " min " + s % 60 + " s"; };
      const heard = s => !s || !s.packets ? "–" : [(s.mos ? "MOS " + s.mos.toFixed(1) + ", " : "") + (100 * s.loss).toFixed(1) + " % lost", s.mos && s.mos < 3.6 ? "bad" : ""];
      async function show() {
        try {
          const [ready, { trunks }, { calls }, hour] = await Promise.all(["/readyz", "/v1/trunks", "/v1/calls", "/v1/hour"].map(ask));
          $("login").hidden = true;
          $("state").textContent = ready.ready ? "takes calls" : "takes no calls"; $("state").className = ready.ready ? "good" : "bad";
          const wrong = (ready.components || []).filter(c => !c.ready).map(c => c.name + ": " + (c.reason || "not ready"))
            .concat(trunks.filter(t => !t.up).map(t => "trunk " + t.trunk + ": " + (t.why || "down")));
          $("wrong").replaceChildren(...(wrong.length ? wrong : ["nothing"]).map(text => { const li = document.createElement("li"); li.textContent = text; if (!wrong.length) li.className = "soft"; return li; }));
          table("trunks", ["Trunk", "State", "Registered until", "Servers up", "Calls", "Last refusal"], trunks.map(t => [t.trunk,
            t.up ? ["up", "good"] : [t.why || "down", "bad"], t.registration ? (t.registration.expires ? new Date(t.registration.expires).toLocaleTimeString() : "no") : "–",
            t.servers.filter(s => s.up).length + " of " + t.servers.length, t.calls + (t.callsLimit ? " of " + t.callsLimit : ""),
            t.lastRefusal ? t.lastRefusal.method + " " + (t.lastRefusal.failure ?? t.lastRefusal.code) + ", " + since(t.lastRefusal.at) + " ago" : "–"]), "no trunks");
          table("calls", ["Since", "Direction", "State", "From", "To", "User", "Trunk", "From trunk", "From app"], calls.map(c => [since(c.times.start), c.direction, c.state, c.from, c.to, c.user, c.trunk, heard(c.fromTrunk), heard(c.fromApp)]), "no calls");
          const of = (count, connected) => count + (count ? " (" + Math.round(100 * connected / count) + " % connected)" : "");
          $("hour").textContent = "Ended: " + of(hour.total.incoming, hour.total.incomingConnected) + " incoming, " + of(hour.total.outgoing, hour.total.outgoingConnected) + " outgoing";
          const most = Math.max(1, ...hour.minutes);
          $("minutes").replaceChildren(...hour.minutes.map((count, at) => {
            const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect"), height = 58 * count / most;
            for (const [key, value] of Object.entries({ x: at * 10 + 1, width: 8, y: 60 - height, height })) bar.setAttribute(key, value);
            return bar;
          }));
          table("reasons", ["How they ended", "Calls"], Object.entries(hour.total.reasons).sort((a, b) => b[1] - a[1]), "none");
        } catch (fault) {
          $("login").hidden = fault != "login";
          $("state").textContent = fault == "login" ? "wants its token" : typeof fault == "string" ? fault : "does not answer"; $("state").className = "bad";
        }
      }
      $("login").addEventListener("submit", event => { event.preventDefault(); token = $("token").value; sessionStorage.setItem("token", token); show(); });
      show(); setInterval(show, 2000);
    </script>
    </html>

    """
}
