// What people act with: forms in a dialog, comment boxes, the palette. Each also works as a page of its own.
import { $, $$, fetched, isOn } from './page.js'

// The form of an action, over the page where it is needed. Modified clicks open it as a page.
const isPlain = event => !(event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey)
async function openForm(link) {
  const dialog = $('#act'), fresh = await fetched(link.href), form = fresh && $('.act-page', fresh)
  if (!form) return location.assign(link.href)
  const cancel = $('.answer a.button', form)
  if (cancel) cancel.onclick = event => { event.preventDefault(); dialog.close() }
  dialog.replaceChildren(form)
  dialog.showModal()
  $('textarea, input:not([type=hidden])', form)?.focus()
}

// A comment box below the line whose number was chosen.
function openComment(link) {
  const template = $('#comment-form'), where = new URL(link.href).searchParams.get('on')
  if (!template || !where) return false
  $('#comment')?.closest('tr').remove()
  const form = template.content.firstElementChild.cloneNode(true), row = document.createElement('tr'), cell = row.insertCell()
  form.elements.where.value = where
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
