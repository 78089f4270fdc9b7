public import TrunklineBytes
import TrunklineRTP

/// A session's slot in its group's mixer.
struct GroupSlot {
  /// Outlives the tick that receives it.
  let mixer: UnsafeMutablePointer<GroupMixer>
  let number: Int
}

// Each trunk of a group hears its own app and the other trunks; an app hears its trunk alone. A call that is held, or whose trunk
// holds us, neither hears nor is heard. Packets are decoded and encoded as long as the call is in the group, also between equal
// codecs.

extension MediaSession {
  /// The group used by the next ticks; nil: none.
  public var mediaGroup: MediaGroupID? { partners.group }

  /// `tick` of a session in a group: mixes its trunk's audio for the others, and theirs for its trunk. HOT
  /// - Parameters:
  ///   - mixer: of the group; not used after the return.
  ///   - member: the index that `GroupMixer.join` returned.
  public mutating func tick(
    _ direction: AudioDirection, in mixer: UnsafeMutablePointer<GroupMixer>, as member: Int, at now: Instant,
    into output: inout MediaOutput
  ) {
    tick(direction, in: GroupSlot(mixer: mixer, number: member), at: now, into: &output)
  }

  /// Mixes the trunk's decoded frame, unless the trunk holds the call: the others do not hear its hold audio. HOT
  mutating func feedGroup(_ slot: GroupSlot, at now: Instant) {
    guard trunk.sends else { return }
    slot.mixer.pointee.mix(frame, band, from: slot.number, at: now)
  }

  /// The app's next frame, mixed with the others' trunks. HOT
  mutating func pullUplink(in slot: GroupSlot, at now: Instant) -> SilenceGate.Step {
    let step = pullUplink(at: now)
    guard !state.isHeld else { return step }
    let isHeard = slot.mixer.pointee.add(to: frame, band, hasAudio: step == .send, for: slot.number, at: now)
    return isHeard ? .send : step
  }
}
