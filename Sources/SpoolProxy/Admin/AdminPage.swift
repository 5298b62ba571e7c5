#if Proxy
/// The owner's page: what is stored and what happens, read anew each second from `/.spool/api/status`.
///
/// Its script and style are files of their own: nothing inline may run here (`Content-Security-Policy`). References are
/// relative, so that the token before them stays.
enum AdminPage {
    static let document = """
        <!doctype html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>Spool</title>
        <link rel="stylesheet" href="page.css">
        <link rel="icon" href="icon.svg">
        <script type="module" src="page.js"></script>
        </head>
        <body>
        <header><h1>Spool</h1><p id="state" role="status">Loading …</p></header>
        <main>
        <dl id="figures"></dl>
        <section><h2>Transfers</h2><div id="transfers"></div></section>
        <section><h2>Media <small id="count"></small></h2><div id="media"></div></section>
        </main>
        <noscript><p>This page needs JavaScript; <a href="api/media">api/media</a> and <a href="metrics">metrics</a> do
        not.</p></noscript>
        </body>
        </html>

        """

    static let icon = """
        <svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 16"><circle cx="8" cy="8" r="7" fill="#2563eb"/>\
        <circle cx="8" cy="8" r="2.5" fill="#fff"/></svg>

        """

    static let style = """
        :root {
            color-scheme: light dark;
            --ink: light-dark(#1a1c20, #e7e9ee); --quiet: light-dark(#5d6470, #9aa2b1);
            --paper: light-dark(#f6f7f9, #14161a); --card: light-dark(#fff, #1d2026);
            --line: light-dark(#dfe3ea, #31363f); --full: light-dark(#2563eb, #6ea0ff); --bad: light-dark(#b42318, #ff8a7a);
        }
        * { box-sizing: border-box; }
        body { margin: 0; background: var(--paper); color: var(--ink); font: 15px/1.45 system-ui, sans-serif; }
        header, main, noscript p { max-width: 72rem; margin: 0 auto; padding: 0 1rem; }
        header { display: flex; align-items: baseline; gap: 1rem; padding-top: 1.2rem; }
        h1 { font-size: 1.5rem; margin: 0; }
        h2 { font-size: 1rem; margin: 1.6rem 0 .5rem; }
        small, #state, dt, .quiet { color: var(--quiet); font-weight: normal; }
        #state { margin: 0; }
        #state.bad { color: var(--bad); }
        dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(11rem, 1fr)); gap: .7rem; margin: 1rem 0 0; }
        dl > div, .empty, table { background: var(--card); border: 1px solid var(--line); border-radius: .5rem; }
        dl > div { padding: .6rem .8rem; }
        dt { font-size: .85rem; }
        dd { margin: 0; font-size: 1.25rem; font-variant-numeric: tabular-nums; }
        dd small { font-size: .8rem; display: block; }
        table { width: 100%; border-spacing: 0; }
        th, td { text-align: left; padding: .4rem .8rem; border-top: 1px solid var(--line); }
        thead th { border-top: 0; font-size: .85rem; font-weight: normal; color: var(--quiet); }
        td.number, th.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
        td.name { overflow-wrap: anywhere; }
        .pin { color: var(--full); }
        .empty { margin: 0; padding: .8rem; color: var(--quiet); }
        svg.bar { display: block; width: 9rem; height: .6rem; background: var(--line); border-radius: .3rem; }
        svg.bar rect { fill: var(--full); }
        @media (max-width: 40rem) { .wide { display: none; } svg.bar { width: 4rem; } th, td { padding: .4rem; } }

        """
}
#endif
