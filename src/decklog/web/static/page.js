// Live updates, slider, keys and previews. Every page also works without scripts.
const $ = (selector, root = document) => root.querySelector(selector)
const set = (selector, values) => Object.assign($(selector) || {}, values)
const $$ = (selector, root = document) => [...root.querySelectorAll(selector)]
const policy = (window.trustedTypes || { createPolicy: (_, rules) => rules }).createPolicy('decklog', {
  // Allow only HTML from this server, and its own worker script.
  createHTML: text => text,
  createScriptURL: url => {
    if (!/^\/static\/[0-9a-f]{16}\/events\.js$/.test(url)) throw Error('not ours')
    return url
  },
})
const parsed = text => new DOMParser().parseFromString(policy.createHTML(text), 'text/html')
// A shared worker fetches for all tabs. Where there are none, the tab runs the same code itself.
const given = document.body.dataset
const alone = ({ port1, port2 }) => {
  import(given.events).then(() => onconnect({ ports: [port2] }))
  return port1
}
const port = window.SharedWorker ? new SharedWorker(policy.createScriptURL(given.events), { name: 'decklog' }).port : alone(new MessageChannel())
const shared = (url, isKept = false) => new Promise(done => {
  const { port1, port2 } = new MessageChannel()
  port1.onmessage = ({ data }) => done(data)
  port.postMessage([url, isKept], [port2])
})
// Returns a page as a document; null if it is missing or needs a login.
const fetched = async url => {
  const text = await shared(`${url}`)
  return text && parsed(text)
}
const whole = document.documentElement
const toEnd = () => {
  newer(0)
  scrollTo(0, whole.scrollHeight)
}

const skew = Date.parse(given.now) - Date.now()
function span(ms) {
  const s = Math.max(0, ms / 1000), [size, unit] = s >= 172800 ? [86400, 'd'] : s >= 3600 ? [3600, 'h'] : s >= 60 ? [60, 'min'] : [1, 's']
  return `${Math.floor(s / size)} ${unit}`
}
function tick() {
  const now = Date.now() + skew
  const isOld = live.lostSince && Date.now() - live.lostSince > 10000
  for (const time of $$('[data-ago], [data-age]')) {
    const said = isOld ? time.dateTime.slice(11, 19) + ' UTC' : span(now - Date.parse(time.dateTime)) + ('ago' in time.dataset ? ' ago' : '')
    if (time.textContent !== said) time.textContent = said
  }
  for (const time of $$('[data-left]')) {
    const left = Date.parse(time.dateTime) - now
    time.textContent = span(left)
    // Expiry appends no entry, so the page refreshes itself once.
    if (left > 0) continue
    delete time.dataset.left
    if (time.closest('#item')) shut('#lapsed')
    refresh()
  }
  say()
  grow()
  // Retry failed requests.
  if (live.state === 'live') {
    if (tail.wanted) follow()
    if (live.wanted || isStale()) refresh()
  }
}
function shut(why) {
  for (const button of $$('#decide:enabled')) {
    button.disabled = true
    $(why).hidden = false
  }
}

// Live: the worker reports which runs changed; the page fetches what it lacks

const lastOf = body => Date.parse(body.dataset.last) - skew || 0
const live = { state: 'connecting', lastAt: lastOf(document.body), next: 0 }
function say() {
  const place = $('#live')
  const text = $('[data-live=none]') ? 'as of an entry, not live'
    // A static page shows the time of its load instead.
    : !isLive() ? ''
    : live.held ? 'paused: . resumes'
    : live.state === 'live' ? 'live' + (live.lastAt ? `, entry ${span(Date.now() - live.lastAt)} ago` : '')
    : live.state === 'lost' ? 'reconnecting; a restarted server needs a new login'
    : ''
  if (text && place.textContent !== text) place.textContent = text
  place.classList.toggle('lost', live.state === 'lost')
}
function heard({ state, moved, reset }) {
  const run = $('[data-run]')?.dataset.run
  live.lostSince = state === 'lost' ? live.lostSince || Date.now() : 0
  live.state = state
  live.newest = moved?.[run] || live.newest
  if (moved) live.lastAt = Date.now()
  if (reset || moved && (!run || run in moved)) catchUp()
  // Age and length are updated once a second: updating per event would draw another frame each time.
  if (!moved) say()
}
// Fetch new rows before the whole page, which takes longer. A hidden tab updates only its title.
const catchUp = () => $('#tail') && !document.hidden ? follow().then(() => setTimeout(refresh, 50)) : refresh()
const rest = ms => new Promise(done => { live.hurry = done; setTimeout(done, ms) })
addEventListener('visibilitychange', () => {
  if (document.hidden) return
  live.hurry?.()
  if (live.state === 'live') catchUp()
})
const options = {
  ignoreActiveValue: true,
  callbacks: {
    // Keep what the reader unfolded, selected or marked.
    beforeAttributeUpdated: (name, node) => !(name === 'open' && node.tagName === 'DETAILS') && !(name === 'class' && 'row' in node.dataset),
    beforeNodeMorphed: node => !['tail', 'item', 'slider', 'newer', 'older'].includes(node.id) && !(node.id === 'diff' && $('form', node)),
  },
}
// The number of the current view: responses to requests from before a slider move are dropped.
let view = 0
const isLive = () => $('[data-live]:not([data-live=none])')
// Repeats an action while it is wanted, never twice at the same time.
const again = (state, act) => async () => {
  state.wanted = true
  if (state.busy) return
  state.busy = true
  try {
    while (state.wanted && !live.held && await act()) {}
  } catch { state.wanted = true } finally { state.busy = false }
}
const refresh = again(live, async () => {
  if (!isLive()) return
  await rest(Math.max(0, live.next + (document.hidden ? 9000 : 0) - Date.now()))
  live.wanted = false
  const begun = Date.now(), mine = view, item = $('#item')
  // In the inbox, fetch the item that is open; the whole inbox if that item is gone.
  const text = await shared(item?.dataset.at || location.pathname + location.search, true) || item && await shared('/inbox', true)
  if (live.held || !text) live.wanted = true
  else if (mine === view) put(parsed(text))
  // Throttle: spend at most a tenth of the time on refreshing. Pages whose rows arrive separately refresh less often, with
  // jitter so that many tabs do not start at once.
  live.next = begun + Math.max($('#tail') ? 2000 + 1000 * Math.random() : 1000, 10 * (Date.now() - begun))
  return text
})
function put(fresh) {
  if (!$('[data-live]', fresh)) return
  const item = $('#item')
  if (item && $('#item', fresh)?.dataset.state !== item.dataset.state) shut('#changed')
  const strip = $('.pulse', fresh)
  noted(fresh)
  if (strip && isStale() && !isSliding()) {
    $('.pulse').replaceWith(strip)
    Object.assign(drawn, { at: Date.now(), newest: live.newest })
  }
  for (const part of ['[data-live]', '#bar nav']) Idiomorph.morph($(part), $(part, fresh), options)
  document.title = fresh.title
  live.lastAt = lastOf(fresh.body) || live.lastAt
  tick()
}

const tail = {}
const follow = again(tail, async () => {
  const list = $('#tail:not([data-still])')
  if (!list) return
  tail.wanted = false
  const text = await shared(`${list.dataset.tail}?after=${list.dataset.last}`, true)
  // A slider move has replaced the list, which then lacks other rows.
  if (text && !live.held && list.isConnected) add(list, parsed(text))
  else tail.wanted = true
  return text
})
const aged = () => $$('.fresh').forEach(row => row.classList.remove('fresh'))
function add(list, fresh) {
  const rows = [...$('ol', fresh).children]
  const newest = $$('[id^=e-]', fresh).at(-1)
  if (!newest) return
  // Only the journal page follows its end; an overview scrolls its rows itself.
  const stay = $('#newer') && innerHeight + scrollY >= whole.scrollHeight - 60
  // Remove the tint by a class, not by an animation: every window would draw each of its frames.
  aged()
  clearTimeout(tail.aging)
  tail.aging = setTimeout(aged, 600)
  for (const row of rows) row.classList.add('fresh')
  list.append(...rows)
  list.dataset.last = newest.id.slice(2)
  const shown = list.getElementsByTagName('time')
  while (shown.length > 300) list.firstElementChild.remove()
  // Removed rows are on the previous page.
  const first = list.firstElementChild.id.slice(2)
  set('#older', { hidden: first < 2, search: `before=${first}` })
  if (stay) toEnd()
  else newer(missed + rows.length)
}
// The journal opens at its end, except for older pages and URLs that name an entry.
if ($('#newer') && !/before=/.test(location.search) && !location.hash) addEventListener('load', toEnd)
let missed = 0
function newer(count) {
  missed = count
  set('#newer', { hidden: !count, textContent: `↓ ${count} new` })
}

// The slider: selects the entry that the page is as of

const slide = $('#slide'), at = $('#at')
// Redraw the timeline strip at most every ten seconds.
const drawn = { at: Date.now(), newest: slide?.max }
const isStale = () => slide && isLive() && !document.hidden && live.newest > drawn.newest && Date.now() > drawn.at + 10000
const isSliding = () => slide.matches(':active')
const noted = fresh => live.newest = +$('#slider', fresh)?.dataset.newest
// Extend the range as the run grows. A slider at the end stays there; one being dragged does not move.
let end = slide?.max
function grow() {
  if (!slide || isSliding()) return
  if (live.newest > slide.max) {
    slide.max = at.max = live.newest
    $('.of').textContent = `of ${live.newest.toLocaleString('en')}`
  }
  if (isLive() && at.value === end && !at.matches(':focus')) slide.value = at.value = end = slide.max
}
if (slide) {
  let wait, round = 0
  const show = async now => {
    const mine = ++round, url = new URL(location), query = url.searchParams
    query.delete('before')
    if (now) query.delete('at')
    else query.set('at', slide.value)
    const fresh = await fetched(url)
    // Only the last request counts, in any order of responses.
    if (mine !== round || !fresh) return
    view++
    if (now) end = at.value
    history.replaceState(null, '', url)
    document.title = fresh.title
    const run = $('.run'), next = $('.run', fresh), parts = [...next.children], middle = parts.indexOf($('#slider', next))
    run.className = next.className
    run.dataset.live = next.dataset.live
    $$('.run > :not(#slider)').forEach(old => old.remove())
    slide.form.before(...parts.slice(0, middle))
    slide.form.after(...parts.slice(middle + 1))
    $('#command').textContent = $('#command', fresh).textContent
    noted(fresh)
    missed = 0
    // Fetch events that arrived during the request.
    if (isLive()) catchUp()
  }
  slide.oninput = () => {
    at.value = slide.value
    clearTimeout(wait)
    // Compare with the end now: it may have moved when the page arrives.
    wait = setTimeout(show, 80, slide.value === slide.max)
  }
}
const step = by => {
  // On an entry's page the keys go to the previous or next entry.
  if (!slide) return void open(by < 0 ? '#previous' : '#following')
  slide.value = +slide.value + by
  slide.oninput()
}

let chosen
const here = () => chosen?.isConnected && chosen
const open = selector => {
  const link = $(selector)
  link?.click()
  return link
}
function move(by) {
  const rows = $$('[data-row]')
  if (!rows.length) return
  chosen?.classList.remove('here')
  chosen = rows[Math.min(rows.length - 1, Math.max(0, rows.indexOf(chosen) + by))]
  chosen.classList.add('here')
  const link = $('a', chosen)
  link ? link.focus() : chosen.scrollIntoView({ block: 'nearest' })
  if ($('#peek').open) peek()
}
function unmark() {
  chosen?.classList.remove('here')
  chosen = null
  document.activeElement?.blur()
}
// Previews the page of a row beside the list. A second press closes it.
let looks = 0
async function peek(turn) {
  const mine = ++looks, dialog = $('#peek'), link = here() && $('a', here())
  if (!link || (turn && dialog.open)) return dialog.close()
  const fresh = await fetched(link.href), main = fresh && $('#main', fresh)
  // Drop the response if another row was selected or the preview was closed.
  if (!main || mine !== looks) return
  $$('form, nav', main).forEach(part => part.remove())
  // Remove ids and data attributes that scripts would take for the page's own.
  for (const name of ['id', 'data-live', 'data-run', 'data-row']) $$(`[${name}]`, main).forEach(part => part.removeAttribute(name))
  dialog.replaceChildren(...main.childNodes)
  if (!dialog.open) dialog.show()
  link.focus()
}
function mark() {
  if (!here()?.id.startsWith('run-')) return
  here().classList.toggle('marked')
  const [a, b] = $$('.marked').map(row => row.id.slice(4))
  if (b) location = `/compare?${new URLSearchParams({ a, b })}`
}
function jump(by) {
  const now = +slide?.value, found = $$('.marks a').map(link => +link.href.split('=')[1]).filter(at => (at - now) * by > 0)
  const next = found.at(by > 0 ? 0 : -1)
  if (next) step(next - now)
}
let pressed
const keys = {
  o: () => here() && $('a', here())?.click(),
  ' ': () => peek(true),
  x: mark,
  '{': () => jump(-1),
  '}': () => jump(1),
  f: toEnd,
  e: () => $$('#main details').forEach(one => one.toggleAttribute('open')),
  y: () => copyText(here()?.id.replace(/^\w+-/, '') || location.href),
  b: () => open('[data-by] [aria-current] + a'),
  // In a list, close the preview or unselect the row; never leave the page.
  Escape: () => $('#peek').open ? peek(true) : unmark(),
  j: () => move(1),
  k: () => move(-1),
  a: () => choose('a', 'granted'),
  d: () => choose('d', 'denied'),
  '[': () => step(-1),
  ']': () => step(1),
  '.': () => { live.held = !live.held; say(); catchUp() },
  c: () => copy('command'),
  '/': () => { location = '/search' },
  t: () => theme(localStorage.theme ? '' : matchMedia('(prefers-color-scheme: dark)').matches ? 'light' : 'dark'),
  '?': () => $('#help').showModal(),
}
function choose(key, verdict) {
  const form = $('form.answer'), link = here() && $(`[data-key=${key}]`, here())
  if (link) link.click()
  else if (form) {
    const choice = $(`[name=verdict][value=${verdict}]`, form)
    if (!choice) return open('#instead')
    choice.checked = true
    $('#reason').focus()
  }
}
const isOn = $('#keys-on')
addEventListener('keydown', event => {
  const { key, target } = event
  if (key === 'Enter' && event.ctrlKey) open('.answer:focus-within #decide:enabled')
  if (target.closest('input, textarea, select, dialog') || event.ctrlKey || event.metaKey || event.altKey || !isOn.checked) return
  if (pressed === 'g' && open(`#help a[href^="/${CSS.escape(key)}"]`)) return
  if (/[1-9]/.test(key)) open(`.tabs a:nth-child(${key})`)
  else if (open(`[data-span="${CSS.escape(key)}"]`)) return
  else if (pressed !== 'g' && keys[key]) { event.preventDefault(); keys[key]() }
  pressed = key
})

const copyText = text => navigator.clipboard?.writeText(text)
const copy = id => copyText($(`#${id}`).textContent)
onclick = ({ target }) => {
  if (target.dataset.copy) copy(target.dataset.copy)
  if (target.id === 'newer') toEnd()
}
// Add the reader's local time to the tooltip.
onmouseover = ({ target }) => {
  if (target.dateTime) target.title = target.title.split(', ')[0] + ', here ' + new Date(target.dateTime).toLocaleString()
}
// Override the system's theme until the key is pressed again.
function theme(name) {
  whole.dataset.theme = localStorage.theme = name
}
theme(localStorage.theme || '')
isOn.checked = localStorage.keys !== 'off'
isOn.onchange = () => { localStorage.keys = isOn.checked ? 'on' : 'off' }
setInterval(tick, 1000)

port.onmessage = ({ data }) => heard(data)
addEventListener('pagehide', () => port.postMessage('bye'))
// A tab restored from the history has left the worker.
addEventListener('pageshow', event => event.persisted && location.reload())
export { $, $$, fetched, keys }
