"""How well the texts of a page stand out from what is behind them, as WCAG 2 measures it."""

from typing import Any

_MEASURE = """() => {
  const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true })
  canvas.canvas.width = canvas.canvas.height = 1
  const rgba = colour => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1)
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data
    return [r, g, b, a / 255]
  }
  const over = (top, below) => [0, 1, 2].map(i => top[i] * top[3] + below[i] * (1 - top[3])).concat(1)
  const light = colour => {
    const [r, g, b] = colour.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b
  }
  const around = element => element ? [element, ...around(element.parentElement ?? element.getRootNode().host)] : []
  const page = matchMedia('(prefers-color-scheme: dark)').matches ? [0, 0, 0, 1] : [255, 255, 255, 1]
  const behind = elements => elements.reverse().reduce((below, one) => {
    const { backgroundColor, backgroundImage } = getComputedStyle(one)
    const stops = backgroundImage.match(/(?:rgba?|oklch|color)\\([^)]*\\)/g) ?? []
    return [backgroundColor, ...stops.slice(0, 1)].reduce((seen, colour) => over(rgba(colour), seen), below)
  }, page)
  const measured = (element, text, style) => {
    const elements = around(element), ground = behind([...elements])
    const faint = elements.reduce((all, one) => all * getComputedStyle(one).opacity, 1)
    const ink = rgba(style.color), seen = over([...ink.slice(0, 3), ink[3] * faint], ground)
    const [a, b] = [light(seen), light(ground)].sort((one, other) => other - one)
    const size = parseFloat(style.fontSize), large = size >= 24 || (size >= 18.66 && style.fontWeight >= 700)
    const where = elements.slice(0, 3).map(one => `${one.tagName}.${one.className?.baseVal ?? one.className}`).join(' < ')
    return { text: text.trim().slice(0, 60), ratio: (a + 0.05) / (b + 0.05), least: large ? 3 : 4.5, ink: style.color,
      ground: ground.map(Math.round).join(), where }
  }
  const isSeen = element => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) && !element.closest('.sr-only')
  const isOff = element => element.closest(':disabled, [aria-disabled=true], [inert]')
  const found = []
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT)
  const range = document.createRange()
  while (walk.nextNode()) {
    const node = walk.currentNode, element = node.parentElement
    range.selectNodeContents(node)
    const box = range.getBoundingClientRect()
    if (!node.data.trim() || box.width < 2 || box.height < 2 || !isSeen(element) || isOff(element)) continue
    if (element.closest('script, style, noscript, option, svg')) continue
    found.push(measured(element, node.data, getComputedStyle(element)))
  }
  for (const box of document.querySelectorAll('textarea, input:not([type=checkbox], [type=radio], [type=file], [type=hidden]), select')) {
    if (!isSeen(box) || (isOff(box) && !box.value)) continue
    const style = box.value ? getComputedStyle(box) : getComputedStyle(box, '::placeholder')
    if (box.value || box.placeholder) found.push(measured(box, box.value || box.placeholder, style))
  }
  return found
}"""


def contrasts(page: Any) -> list[dict[str, Any]]:
    """The contrast of every text that is to be seen on a page (also in boxes) and the least that it needs."""
    page.wait_for_timeout(600)  # transitions have ended
    measured: list[dict[str, Any]] = page.evaluate(_MEASURE)
    assert measured, "nothing is to be seen"
    return measured


def poor(page: Any) -> list[str]:
    """The texts that stand out too little, each on a line: 4.5 : 1 is needed, 3 : 1 for large ones."""
    lines = [
        f"{one['ratio']:.2f} {one['text']!r} {one['ink']} on {one['ground']} in {one['where']}"
        for one in contrasts(page)
        if one["ratio"] < one["least"]
    ]
    return list(dict.fromkeys(lines))
