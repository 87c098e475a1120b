// Forms in a dialog, comment boxes, the palette, graph and timeline. Each also works as a separate page.
import { $, $$, fetched, keys } from './page.js'

// Opens an action's form in a dialog. Modified clicks open it as a page.
const isPlain = event => !(event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
async function openForm(link) {
  const dialog = $('#act'), fresh = await fetched(link.href), form = fresh && $('.act-page', fresh)
  if (!form) return location.assign(link.href)
  // Focus is set below; browsers warn about a second autofocus.
  $$('[autofocus]', form).forEach(field => field.removeAttribute('autofocus'))
  dialog.replaceChildren(form)
  // After the move: handlers set in the other document are lost.
  const cancel = $('.answer a.button', form)
  if (cancel) cancel.onclick = event => { event.preventDefault(); dialog.close() }
  dialog.showModal()
  $('textarea, input:not([type=hidden])', form)?.focus()
}

// Opens a comment box below the selected line.
function openComment(link) {
  const template = $('#comment-form'), where = new URL(link.href).searchParams.get('on')
  if (!template || !where) return false
  $('#comment')?.closest('tr').remove()
  const form = template.content.firstElementChild.cloneNode(true), row = document.createElement('tr'), cell = row.insertCell()
  form.elements.where.value = where
  form.elements.text.removeAttribute('autofocus')
  $('label', form).firstChild.data = `Comment on ${where} `
  cell.colSpan = 4
  row.className = 'd-note'
  cell.append(form)
  link.closest('tr').after(row)
  $('a.button', form).onclick = event => { event.preventDefault(); row.remove(); link.focus() }
  form.elements.text.focus()
  return true
}

addEventListener('click', event => {
  const link = event.target.closest?.('a')
  if (!link || !isPlain(event)) return
  if ('act' in link.dataset) {
    event.preventDefault()
    openForm(link)
  } else if (link.classList.contains('on') && openComment(link)) event.preventDefault()
})

// The bar: its buttons do what keys do. They are hidden without scripts.
for (const [id, key] of [['help-open', '?'], ['theme', 't']]) if ($(`#${id}`)) $(`#${id}`).onclick = () => keys[key]()
// A menu closes on a click outside, on Escape and when it loses focus.
const menus = () => $$('details.menu[open]')
addEventListener('click', event => menus().forEach(menu => menu.contains(event.target) || menu.removeAttribute('open')))
addEventListener('focusout', event => menus().forEach(menu => event.relatedTarget && !menu.contains(event.relatedTarget) && menu.removeAttribute('open')))
addEventListener('keydown', event => {
  const menu = event.key === 'Escape' && menus()[0]
  if (!menu) return
  event.stopImmediatePropagation()
  menu.removeAttribute('open')
  $('summary', menu).focus()
}, true)

// The palette: a server page in a dialog, fetched while the user types.
const palette = $('#palette'), typed = $('#palette-q')
let asked = 0
async function find() {
  const mine = ++asked, run = $('[data-run]')?.dataset.run, query = new URLSearchParams({ q: typed.value, ...(run && { on: run }) })
  const fresh = await fetched(`/palette?${query}`)
  // Only the last request counts, in any order of responses.
  if (mine !== asked || !fresh) return
  const chosen = document.activeElement.closest('#palette-found a')?.getAttribute('href')
  $('#palette-found').replaceChildren($('#found-rows', fresh))
  // Keep the selected row.
  if (chosen) ($$('#palette-found a').find(link => link.getAttribute('href') === chosen) || typed).focus()
}
function openPalette() {
  if (palette.open) return
  typed.value = ''
  $('#palette-found').replaceChildren()
  palette.showModal()
  typed.focus()
  find()
}
if (palette) {
  const links = () => $$('a', palette)
  typed.oninput = find
  $('form', palette).onsubmit = event => { event.preventDefault(); links()[0]?.click() }
  palette.onkeydown = event => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (!step) return
    event.preventDefault()
    const rows = [typed, ...links()]
    rows[(rows.indexOf(document.activeElement) + step + rows.length) % rows.length].focus()
  }
  palette.addEventListener('click', event => event.target.closest('[data-act]') && palette.close(), true)
  $('#palette-open').addEventListener('click', event => {
    if (!isPlain(event)) return
    event.preventDefault()
    openPalette()
  })
  addEventListener('keydown', event => {
    if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return
    event.preventDefault()
    openPalette()
  })
}

// The dependency graph: links zoom without a request, arrow keys follow the edges.
function zoom(to) {
  const graph = $('#graph'), links = $$('[data-zoom]'), link = links.find(one => one.dataset.zoom === `${to}`)
  if (!graph || !link) return
  graph.setAttribute('width', graph.dataset.width * to / 100)
  for (const one of links) one === link ? one.setAttribute('aria-current', 'true') : one.removeAttribute('aria-current')
  history.replaceState(null, '', link.href)
}
addEventListener('click', event => {
  const link = isPlain(event) && event.target.closest?.('[data-zoom]')
  if (!link) return
  event.preventDefault()
  zoom(link.dataset.zoom)
})
addEventListener('keydown', event => {
  const box = event.target.closest?.('.graph-box')
  if (!box || event.ctrlKey || event.metaKey || event.altKey) return
  const links = $$('[data-zoom]'), at = links.findIndex(one => one.hasAttribute('aria-current'))
  if (event.key === '+' || event.key === '-') zoom(links[at + (event.key === '+' ? 1 : -1)]?.dataset.zoom)
  const node = event.target.closest('.node'), nodes = $$('.node', box)
  if (!node) return
  const rows = nodes.filter(one => $('rect', one).x.baseVal.value === $('rect', node).x.baseVal.value).sort((a, b) => $('rect', a).y.baseVal.value - $('rect', b).y.baseVal.value)
  const next = {
    ArrowLeft: () => nodes[node.dataset.before.split(' ')[0] || NaN],
    ArrowRight: () => nodes[node.dataset.behind.split(' ')[0] || NaN],
    ArrowUp: () => rows[rows.indexOf(node) - 1],
    ArrowDown: () => rows[rows.indexOf(node) + 1],
  }[event.key]
  if (!next) return
  event.preventDefault()
  next()?.focus()
})

// The timeline: dragging over the bars selects a time range.
addEventListener('pointerdown', event => {
  const bars = event.button === 0 && event.target.closest?.('.timeline .bars')
  if (!bars) return
  const timeline = $('#timeline'), box = bars.getBoundingClientRect(), left = timeline.getBoundingClientRect().left
  const mark = document.createElement('div'), limits = x => Math.min(box.right, Math.max(box.left, x))
  const start = limits(event.clientX)
  let end = start
  mark.className = 'drag'
  const at = x => {
    const place = (x - box.left) / box.width * 100, pieces = JSON.parse(timeline.dataset.scale)
    const [from, width, began, ended] = pieces.find(([from, width]) => place <= from + width) || pieces.at(-1)
    return new Date(1000 * (began + (ended - began) * Math.min(1, Math.max(0, (place - from) / (width || 1))))).toISOString().replace(/\.\d+Z/, 'Z')
  }
  const moved = move => {
    end = limits(move.clientX)
    if (!mark.isConnected && Math.abs(end - start) > 4) timeline.append(mark)
    // The content security policy allows styles that scripts set.
    Object.assign(mark.style, { left: `${Math.min(start, end) - left}px`, width: `${Math.abs(end - start)}px` })
  }
  const done = () => {
    removeEventListener('pointermove', moved)
    mark.remove()
    if (Math.abs(end - start) < 5) return
    const url = new URL(timeline.dataset.page, location)
    url.searchParams.set('from', at(Math.min(start, end)))
    url.searchParams.set('to', at(Math.max(start, end)))
    location.assign(url)
  }
  addEventListener('pointermove', moved)
  addEventListener('pointerup', done, { once: true })
  event.preventDefault()
})

// Pending decisions: a dot on the tab's icon and, if enabled, a notification. The title holds the count.
const bell = $('#notify'), icon = $('#icon')
const waiting = () => +(document.title.match(/^\((\d+)\)/)?.[1] || 0)
const wantsNotes = () => localStorage.notify === 'on' && Notification.permission === 'granted'
let known = waiting()
function look() {
  const count = waiting(), href = count ? icon.dataset.waiting : icon.dataset.calm
  if (icon.getAttribute('href') !== href) icon.setAttribute('href', href)
  if (count > known && window.Notification && wantsNotes() && !document.hasFocus()) {
    const note = new Notification(count === 1 ? 'A decision waits' : `${count} decisions wait`, { body: 'Decklog', tag: 'decklog' })
    note.onclick = () => { focus(); location.assign('/inbox') }
  }
  known = count
}
new MutationObserver(look).observe($('title'), { childList: true, characterData: true, subtree: true })
if (bell && window.Notification) {
  const show = () => bell.setAttribute('aria-pressed', `${wantsNotes()}`)
  bell.onclick = async () => {
    if (wantsNotes()) localStorage.notify = 'off'
    else if (await Notification.requestPermission() === 'granted') localStorage.notify = 'on'
    show()
  }
  show()
} else if (bell) bell.hidden = true
