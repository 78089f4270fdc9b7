import Control

/// The way from the sockets, which are made first, to control, which needs them.
final class ControlReference {
  weak var control: Control?
  weak var gateway: Gateway?
}
