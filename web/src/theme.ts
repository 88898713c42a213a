import { createTheme } from '@mantine/core'

/** Spacing is on a grid of 4 px, and text has two sizes: 13 for content, 12 for what goes with it. Titles of pages have 14. */
export const theme = createTheme({
  fontFamily: 'Inter, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Liberation Sans", Arial, sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, "Liberation Mono", monospace',
  fontSizes: { xs: '12px', sm: '13px', md: '13px', lg: '14px', xl: '14px' },
  lineHeights: { xs: '16px', sm: '20px', md: '20px', lg: '20px', xl: '20px' },
  spacing: { xs: '4px', sm: '8px', md: '12px', lg: '16px', xl: '24px' },
  headings: { fontWeight: '600', sizes: { h1: { fontSize: '14px', lineHeight: '20px' }, h2: { fontSize: '13px', lineHeight: '20px' }, h3: { fontSize: '13px', lineHeight: '20px' } } },
  primaryColor: 'blue',
  primaryShade: 8,
  defaultRadius: 'sm',
  radius: { xs: '2px', sm: '4px', md: '8px' },
  cursorType: 'pointer',
  components: {
    Button: { defaultProps: { size: 'xs' } },
    ActionIcon: { defaultProps: { size: 28, variant: 'subtle', color: 'gray' } },
    TextInput: { defaultProps: { size: 'xs' } },
    PasswordInput: { defaultProps: { size: 'xs' } },
    Textarea: { defaultProps: { size: 'xs' } },
    NumberInput: { defaultProps: { size: 'xs' } },
    Select: { defaultProps: { size: 'xs' } },
    MultiSelect: { defaultProps: { size: 'xs' } },
    Checkbox: { defaultProps: { size: 'xs' } },
    SegmentedControl: { defaultProps: { size: 'xs' } },
    Tooltip: { defaultProps: { openDelay: 400, withArrow: true } },
    Modal: { defaultProps: { centered: true, transitionProps: { duration: 0 } } },
    Menu: { defaultProps: { shadow: 'md', transitionProps: { duration: 0 }, withInitialFocusPlaceholder: false } }, // a placeholder is a child that a menu may not have
    Drawer: { defaultProps: { transitionProps: { duration: 0 } } },
  },
})
