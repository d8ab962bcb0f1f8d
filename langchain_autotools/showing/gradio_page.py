"""The HTML `head` of a Gradio page with a chat."""

from typing import Final

_POLICY: Final = "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; form-action 'self'; base-uri 'none'; object-src 'none'"
_STYLE: Final = """
.message, .sidebar label { overflow-wrap: anywhere; }
.message .md > div { margin: .45em 0; }
.refused textarea { color: #c0392b !important; }
"""
_SCRIPT: Final = """
let waiting = 0;
new MutationObserver(() => {
  const found = document.querySelectorAll('.approval');
  if (found.length > waiting) for (const wait of [200, 1000]) setTimeout(() => {
    document.querySelectorAll('[aria-label="chatbot conversation"]').forEach(one => one.scrollTop = one.scrollHeight);
    found[0].scrollIntoView({block: 'nearest'});
  }, wait);
  waiting = found.length;
}).observe(document, {childList: true, subtree: true});
const draft = () => 'draft ' + location.search;
addEventListener('pagehide', () => sessionStorage.setItem(draft(), document.querySelector('.draft textarea')?.value || ''));
function keptDraft() { return sessionStorage.getItem(draft()) || ''; }
"""

CHAT_HEAD: Final = f"""<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<style>{_STYLE}</style>
<script>{_SCRIPT}</script>"""
"""The HTML head of a page with a chat, for `launch(head=CHAT_HEAD)`.

The browser asks nobody else for anything and sends no form elsewhere. Components with the class `approval` are scrolled to when they come.
What stands in a text box with the class `draft` when the page is left or loads itself again is what `keptDraft()` gives afterwards.
"""
