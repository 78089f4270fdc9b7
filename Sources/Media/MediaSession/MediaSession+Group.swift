public import Bytes
import RTP

/// A session's slot in the mixer of its group.
struct GroupSlot {
  /// Lives longer than the tick that it is handed to.
  let mixer: UnsafeMutablePointer<GroupMixer>
  let number: Int
}

// Each trunk of a group hears its own app and the other trunks; an app hears its trunk alone. A call that is held, or whose trunk holds us,
// neither hears nor is heard; packets are decoded and coded as long as it is in the group, also between equal codecs.

extension MediaSession {
  /// The group that the next ticks are in; nil: none.
  public var mediaGroup: MediaGroupID? { group }

  /// `tick` of a session in a group: what its trunk says goes to the others, what they said to its trunk. HOT
  /// - Parameters:
  ///   - mixer: of the group; not touched after the return.
  ///   - member: the index that `GroupMixer.join` returned.
  public mutating func tick(
    _ direction: AudioDirection, in mixer: UnsafeMutablePointer<GroupMixer>, as member: Int, at now: Instant,
    into output: inout MediaOutput
  ) {
    tick(direction, in: GroupSlot(mixer: mixer, number: member), at: now, into: &output)
  }

  mutating func group(_ next: MediaGroupID?) {
    guard group != next else { return }
    group = next
    updateRelay()
  }

  /// The trunk's frame, as decoded. What a trunk plays to a call that it holds is not for the others. HOT
  mutating func feedGroup(_ slot: GroupSlot, at now: Instant) {
    guard trunk.sends else { return }
    slot.mixer.pointee.mix(frame, band, from: slot.number, at: now)
  }

  /// The app's next frame and what the others' trunks say. HOT
  mutating func pullUplink(in slot: GroupSlot, at now: Instant) -> SilenceGate.Step {
    let step = pullUplink(at: now)
    guard !isHeld else { return step }
    let isHeard = slot.mixer.pointee.add(to: frame, band, hasAudio: step == .send, for: slot.number, at: now)
    return isHeard ? .send : step
  }
}
