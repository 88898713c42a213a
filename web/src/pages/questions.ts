import { useEffect, useRef } from 'react'
import { api, take, type Schemas } from '../api/client'

/** A question with the run that waits for its answer. */
export interface Question {
  run: Schemas['RunRow']
  interrupt: Schemas['Interrupt']
}

/** The questions of all runs that the caller reaches, the newest run first. */
export async function waitingQuestions(signal?: AbortSignal): Promise<Question[]> {
  const list = await take(api.GET('/v1/runs', { params: { query: { status: waitingStatuses, limit: 200 } }, signal }))
  return questionsOf(list.runs ?? [])
}

/** The statuses of runs that may wait for a person. */
export const waitingStatuses = ['paused', 'running']

/** The questions of runs that people answer. */
export function questionsOf(runs: Schemas['RunRow'][]): Question[] {
  return runs.flatMap((run) => (run.interrupts ?? []).filter((i) => !isOutside(i)).map((interrupt) => ({ run, interrupt })))
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
