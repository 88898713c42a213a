import '@mantine/core/styles/baseline.css'
import '@mantine/core/styles/default-css-variables.css'
import '@mantine/core/styles/global.css'
import '@mantine/core/styles/UnstyledButton.css'
import '@mantine/core/styles/Button.css'
import '@mantine/core/styles/ActionIcon.css'
import '@mantine/core/styles/CloseButton.css'
import '@mantine/core/styles/Combobox.css'
import '@mantine/core/styles/Input.css'
import '@mantine/core/styles/Loader.css'
import '@mantine/core/styles/Menu.css'
import '@mantine/core/styles/ModalBase.css'
import '@mantine/core/styles/Modal.css'
import '@mantine/core/styles/Overlay.css'
import '@mantine/core/styles/Paper.css'
import '@mantine/core/styles/PasswordInput.css'
import '@mantine/core/styles/Pill.css'
import '@mantine/core/styles/PillsInput.css'
import '@mantine/core/styles/Popover.css'
import '@mantine/core/styles/ScrollArea.css'
import '@mantine/core/styles/Checkbox.css'
import '@mantine/core/styles/CheckboxIndicator.css'
import '@mantine/core/styles/NumberInput.css'
import '@mantine/core/styles/Tooltip.css'
import '@mantine/core/styles/InlineInput.css'
import '@mantine/core/styles/Group.css'
import '@mantine/core/styles/Text.css'
import './page.css'
import { MantineProvider } from '@mantine/core'
import { setNonce } from 'get-nonce'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { App } from './App'
import { theme } from './theme'

const nonce = document.querySelector<HTMLMetaElement>('meta[name=nonce]')?.content ?? ''

setNonce(nonce)

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <MantineProvider theme={theme} defaultColorScheme="auto" getStyleNonce={() => nonce}>
      <App />
    </MantineProvider>
  </StrictMode>,
)
