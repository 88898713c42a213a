import { useEffect, useRef } from 'react'
import type { Schemas } from '../api'
import { href } from '../route'

/** A question with the run that waits for its answer. */
export interface Question {
  run: Schemas['RunRow']
  interrupt: Schemas['Interrupt']
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

/** Whether the person has allowed notifications of the system. */
export function mayNotify(): boolean {
  return typeof Notification !== 'undefined' && Notification.permission === 'granted'
}

/** Notifies of questions that appear while the page is not in view, where the person allowed it. A click leads to the question. */
export function useNotifications(list: Question[] | undefined) {
  const known = useRef<Set<string>>(undefined)
  useEffect(() => {
    if (!list) return
    const keys = list.map((q) => q.run.run + q.interrupt.id)
    const fresh = list.filter((_, i) => known.current && !known.current.has(keys[i]))
    known.current = new Set(keys)
    if (!mayNotify() || !document.hidden) return
    for (const q of fresh) {
      const shown = new Notification(q.run.flow, { body: q.interrupt.prompt, tag: q.run.run + q.interrupt.id })
      shown.onclick = () => {
        window.focus()
        location.hash = href(['runs', q.run.run], { node: q.interrupt.node })
      }
    }
  }, [list])
}
