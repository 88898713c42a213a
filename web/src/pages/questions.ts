import { useEffect, useRef } from 'react'
import { api, take, type Schemas } from '../api/client'

/** A question with the run that waits for its answer. */
export interface Question {
  run: Schemas['RunRow']
  interrupt: Schemas['Interrupt']
}

/** The questions of all runs that the caller reaches, the newest run first. */
export async function waitingQuestions(signal?: AbortSignal): Promise<Question[]> {
  const list = await take(api.GET('/v1/runs', { params: { query: { status: ['paused', 'running'], limit: 200 } }, signal }))
  const out: Question[] = []
  for (const run of list.runs ?? []) for (const interrupt of run.interrupts ?? []) if (!isOutside(interrupt)) out.push({ run, interrupt })
  return out
}

/** Timers and child runs are not answered by people. */
function isOutside(i: Schemas['Interrupt']): boolean {
  return ['timer', 'child'].includes(i.kind)
}

/** Notifies of questions that appear while the page is not in view, where the person allowed it. */
export function useNotifications(list: Question[] | undefined) {
  const known = useRef<Set<string>>(undefined)
  useEffect(() => {
    if (!list) return
    const keys = list.map((q) => q.run.run + q.interrupt.id)
    const fresh = list.filter((_, i) => known.current && !known.current.has(keys[i]))
    known.current = new Set(keys)
    if (typeof Notification === 'undefined' || Notification.permission !== 'granted' || !document.hidden) return
    for (const q of fresh) new Notification(q.run.flow, { body: q.interrupt.prompt, tag: q.run.run + q.interrupt.id })
  }, [list])
}
