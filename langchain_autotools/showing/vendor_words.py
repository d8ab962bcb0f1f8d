"""What a vendor does by itself in words, for lines of text and for pages."""

from ..addresses import is_page
from ..encoders.plain import to_json
from ..messages.printable import escaped
from ..vendor_event_types import FileMade, SourceFound
from .view_model import FileView, SourcesView, VendorCallView

_BRIEF = 160


def source_name(found: SourceFound) -> str:
    """Return what a source is called."""
    return found.title or found.document or found.url or "a source"


def source_line(found: SourceFound) -> str:
    """Return a source on one line, with its address."""
    return f"{source_name(found)} <{found.url}>" if is_page(found.url) and found.url != source_name(found) else source_name(found)


def file_name(event: FileMade) -> str:
    """Return what a file is called, with its type and its size."""
    size = f", {event.size / 1000:.1f} kB" if event.size else ""
    return f"{event.name or event.file_id or 'file'} ({event.mime_type}{size})"


def vendor_call_brief(call: VendorCallView) -> str:
    """Return what a call is called with, for one line."""
    words = ", ".join(value if isinstance(value, str) else to_json(value) for value in (call.args or {}).values())
    line = escaped(" ".join(words[: 2 * _BRIEF].split()))
    return f"{line[:_BRIEF]}…" if len(line) > _BRIEF else line


def vendor_text(part: VendorCallView | SourcesView | FileView) -> str:
    """Return what a vendor does as plain text."""
    if isinstance(part, FileView):
        return f"[{file_name(part.event)}]"
    if isinstance(part, SourcesView):
        return "\n".join(f"[{number}] {source_line(one)}" for number, one in enumerate(part.sources, 1))
    return f"⌕ {part.name} {vendor_call_brief(part)}".rstrip() + f" ({part.state})"
