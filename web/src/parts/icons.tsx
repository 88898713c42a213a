const paths = {
  runs: 'M3 4h10M3 8h7M3 12h9', inbox: 'M2.5 9.5 4 3h8l1.5 6.5v3h-11zM2.5 9.5h3l1 1.5h3l1-1.5h3', chat: 'M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z', sessions: 'M5 2.5h8.5v6.5M2.5 5.5h8.5v8h-8.5z',
  flows: 'M2.5 2.5h4v3h-4zM9.5 10.5h4v3h-4zM4.5 5.5v6.5h5', memory: 'M8 2.5c3 0 5 .8 5 2v7c0 1.2-2 2-5 2s-5-.8-5-2v-7c0-1.2 2-2 5-2zM3 4.5c0 1.2 2 2 5 2s5-.8 5-2M3 8c0 1.2 2 2 5 2s5-.8 5-2', usage: 'M3 13V8M8 13V3M13 13V6',
  close: 'M4 4l8 8M12 4l-8 8', right: 'M6 4l4 4-4 4', down: 'M4 6l4 4 4-4', copy: 'M5.5 5.5h7.5v7.5h-7.5zM3 10.5v-7.5h7.5', more: 'M3.5 8h.01M8 8h.01M12.5 8h.01', sun: 'M8 5.5a2.5 2.5 0 1 0 0 5 2.5 2.5 0 0 0 0-5zM8 1.5v1.5M8 13v1.5M1.5 8h1.5M13 8h1.5M3.400 3.400l1 1M11.600 11.600l1 1M3.400 12.600l1-1M11.600 4.400l1-1',
  clip: 'M13 7.500 8 12.500a3 3 0 0 1-4.300-4.300l5.300-5.300a2 2 0 0 1 2.800 2.800L6.700 10.800a1 1 0 0 1-1.400-1.400l4.700-4.700',
  play: 'M5 3.5l7 4.5-7 4.5z', link: 'M6.5 9.5l3-3M7 4.5l1.5-1.5a2.5 2.5 0 0 1 3.5 3.5l-1.5 1.5M9 11.5l-1.5 1.5a2.5 2.5 0 0 1-3.5-3.5l1.5-1.5', fork: 'M4.5 3v6M4.5 12.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM11.5 5.5a1.5 1.5 0 1 0 0-3 1.5 1.5 0 0 0 0 3zM11.5 5.5c0 3-3 3.5-6 4.5', bell: 'M4 11V7a4 4 0 0 1 8 0v4l1 1H3zM7 13.5h2', out: 'M6.5 3h-3.5v10h3.5M7 8h6.5M11 5.5l2.5 2.5-2.5 2.5', fit: 'M3 6V3h3M10 3h3v3M13 10v3h-3M6 13H3v-3',
  files: 'M4 2.5h5l3 3v8h-8zM9 2.5v3h3',
  offline: 'M2.500 6a8 8 0 0 1 11 0M4.500 8.500a5 5 0 0 1 7 0M8 12h.01M3 2l10 12', search: 'M7 11.500a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9zM10.500 10.500l3 3', edit: 'M3 13l.7-3L11 2.700l2.300 2.300L6 12.300zM9.500 4.200l2.300 2.300', again: 'M13 8a5 5 0 1 1-1.500-3.600M13 2.500v3h-3', back: 'M10 4 6 8l4 4', download: 'M8 2.5v7.5M5 7l3 3 3-3M3 13h10',
} as const

export type IconName = keyof typeof paths

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg width={size} height={size} viewBox="0 0 16 16" fill="none" stroke="currentColor" strokeWidth={name === 'more' ? 2 : 1.4} strokeLinecap="round" strokeLinejoin="round" aria-hidden="true" style={{ flex: 'none' }}>
      <path d={paths[name]} />
    </svg>
  )
}
