/** A duration in milliseconds, in two units at most. */
export function duration(ms: number): string {
  if (ms < 1) return ms <= 0 ? '0 ms' : `${Math.round(ms * 1000)} µs`
  if (ms < 1000) return `${ms < 10 ? ms.toFixed(1) : Math.round(ms)} ms`
  const s = ms / 1000
  if (s < 60) return `${s < 10 ? s.toFixed(1) : Math.round(s)} s`
  const m = Math.floor(s / 60)
  if (m < 60) return `${m} min ${Math.round(s % 60)} s`
  const h = Math.floor(m / 60)
  if (h < 48) return `${h} h ${m % 60} min`
  return `${Math.floor(h / 24)} d ${h % 24} h`
}

/** Millionths of a dollar. */
export function cost(micros: number): string {
  if (!micros) return '–'
  const d = micros / 1e6
  return d < 0.01 ? `$${d.toFixed(5).replace(/0+$/, '')}` : d < 1 ? `$${d.toFixed(3)}` : `$${d.toFixed(2)}`
}

const whole = new Intl.NumberFormat('en')

export function count(n: number): string {
  if (n < 1000) return String(n)
  if (n < 10000) return whole.format(n)
  if (n < 1e6) return `${(n / 1000).toFixed(n < 100000 ? 1 : 0)}k`
  return `${(n / 1e6).toFixed(1)}M`
}

export function bytes(n: number): string {
  if (n < 1024) return `${n} B`
  if (n < 1 << 20) return `${(n / 1024).toFixed(1)} KB`
  return `${(n / (1 << 20)).toFixed(1)} MB`
}

export function ago(time: number, now: number): string {
  const s = Math.max(0, (now - time) / 1000)
  if (s < 5) return 'now'
  if (s < 60) return `${Math.floor(s)} s ago`
  if (s < 3600) return `${Math.floor(s / 60)} min ago`
  if (s < 86400) return `${Math.floor(s / 3600)} h ago`
  return `${Math.floor(s / 86400)} d ago`
}

export function clock(ms: number): string {
  const d = new Date(ms)
  const two = (n: number) => String(n).padStart(2, '0')
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())} ${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`
}

export function plain(v: unknown): string {
  return typeof v === 'string' ? v : JSON.stringify(v, null, 2)
}

/** A number of things: 1 call, 2 calls. */
export function many(n: number, thing: string): string {
  return `${count(n)} ${thing}${n === 1 ? '' : 's'}`
}
