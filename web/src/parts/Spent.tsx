import { count } from '../format'
import { t } from '../strings'

/** How much of a limit is used, as numbers and as a bar. `show` formats an amount. */
export function Spent({ name, used, most, show = short }: { name: string; used: number; most: number; show?: (n: number) => string }) {
  const text = `${show(used)} ${t.run.of} ${show(most)}`
  return (
    <div className="column gap4">
      <div className="row small"><span className="dim grow">{name}</span><span>{text}</span></div>
      <div className="meter" role="img" aria-label={`${name}: ${text}`}><i style={{ width: `${Math.min(100, (used / most) * 100)}%`, background: used >= most ? 'var(--bad)' : used > most * 0.8 ? 'var(--wait)' : 'var(--run)' }} /></div>
    </div>
  )
}

const short = (n: number) => count(Math.round(n * 100) / 100)
