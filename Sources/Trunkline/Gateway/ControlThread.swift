import Control

/// What only the control thread uses. Others hold it as `LoopBound`, and post to it.
struct ControlThread {
  let control: Control
  let sip: SIPComponent
  let peers: TrunkPeers
  let addresses: AddressChanges
}

/// The way from the sockets, which are made first, to control, which needs them.
final class ControlReference {
  weak var control: Control?
}
