import TrunklineAudioCodecs
public import TrunklineBytes
import TrunklineRTP

/// The group of calls that a session belongs to. Chosen by control, never reused within a process.
public struct MediaGroupID: Hashable, Sendable {
  public let raw: UInt64
  public init(raw: UInt64) { self.raw = raw }
}

/// Mixes the calls of a group: each trunk hears the others, the loudest three of them, at their own level. An app hears its own
/// trunk only, since the device mixes its calls.
///
/// | event | what happens |
/// |---|---|
/// | `mix`, at a member's tick from its trunk | the frame waits for the others' ticks, 0 to 20 ms |
/// | `add`, at a member's tick to its trunk | adds up the next frame of each other member |
/// | a fourth talker is 6 dB louder than the quietest of three | replaces that one, within a frame |
/// | a frame is missing: ticks have moved past each other | the last one is played backwards, fading out |
/// | a frame waits longer than 50 ms, or 30 in a pause: the same, in reverse | it fades into the next one |
///
/// The input is complete: each member's jitter buffer and concealment come before the mixer. Members' ticks stay at the phase
/// that their own packets need, so nothing is stretched for the group.
///
/// One thread. Memory: 21 KB, allocated only with the group.
public struct GroupMixer: ~Copyable {
  // `Limits.groupMembers` slots, all initialised; freed in deinit. `isUsed` marks the members.
  private let members: UnsafeMutablePointer<GroupMember>
  // The sum that a member hears, one wideband frame; freed in deinit.
  private let sum: UnsafeMutablePointer<Int32>

  public init() {
    members = .allocate(capacity: Limits.groupMembers)
    for index in 0..<Limits.groupMembers { (members + index).initialize(to: GroupMember()) }
    sum = .allocate(capacity: Frame.capacity)
    sum.initialize(repeating: 0, count: Frame.capacity)
  }
  deinit {
    members.deinitialize(count: Limits.groupMembers)
    members.deallocate()
    sum.deallocate()
  }

  /// Adds a member and returns its index; nil if all slots are used. It hears and is heard from the next frame on.
  public mutating func join() -> Int? {
    guard let member = (0..<Limits.groupMembers).first(where: { !members[$0].isUsed }) else { return nil }
    members[member].begin()
    for other in 0..<Limits.groupMembers {
      members[member].cursors[other] = GroupCursor(read: members[other].written)
      members[other].cursors[member] = GroupCursor(read: members[member].written)
    }
    return member
  }

  /// Removes a member: its last frame fades out at the others.
  public mutating func leave(_ member: Int) {
    guard members.indexIsValid(member) else { return }
    members[member].isUsed = false
  }

  public var isEmpty: Bool { !(0..<Limits.groupMembers).contains { members[$0].isUsed } }

  /// Adds 20 ms of `band` from a member's trunk, at the member's tick from its trunk; not called for a tick without
  /// audio. HOT
  public mutating func mix(_ samples: UnsafePointer<Int16>, _ band: AudioBand, from member: Int, at now: Instant) {
    guard members.indexIsValid(member), members[member].isUsed else { return }
    let needsOther = (0..<Limits.groupMembers).contains { members[$0].isUsed && $0 != member && members[$0].band != band }
    members[member].band = band
    members[member].mix(samples, band, inBoth: needsOther, at: now)
  }

  /// Adds the other members' audio to `frame`, 20 ms of the member's own app, and returns whether it contains any audio. If
  /// several talk, each sample of the sum is compressed below full scale; a single talker stays unchanged. HOT
  public mutating func add(
    to frame: UnsafeMutablePointer<Int16>, _ band: AudioBand, hasAudio: Bool, for member: Int, at now: Instant
  ) -> Bool {
    guard members.indexIsValid(member), members[member].isUsed else { return hasAudio }
    members[member].band = band
    let count = band.samplesPerTick
    sum.update(repeating: 0, count: count)
    let left = leftOut(for: member)
    var heard = 0
    for other in 0..<Limits.groupMembers where other != member {
      let source = members + other
      if source.pointee.add(to: sum, band, &members[member].cursors[other], isChosen: other != left, at: now) { heard &+= 1 }
    }
    guard heard > 0 else { return hasAudio }
    Self.join(sum, to: frame, count, bends: heard &+ (hasAudio ? 1 : 0) > 1)
    return true
  }

  /// The quietest member if more than three could be heard, with hysteresis; −1: none.
  private mutating func leftOut(for member: Int) -> Int {
    var (quietest, others) = (-1, 0)
    let former = members[member].leavesOut
    for other in 0..<Limits.groupMembers where other != member && members[other].isUsed {
      others &+= 1
      guard other != former, quietest < 0 || members[other].power < members[quietest].power else { continue }
      quietest = other
    }
    guard others > Limits.groupTalkers else {
      members[member].leavesOut = -1
      return -1
    }
    let stays = former >= 0 && members[former].isUsed && members[former].power <= Limits.louderTalker * members[quietest].power
    if !stays { members[member].leavesOut = quietest }
    return members[member].leavesOut
  }

  /// HOT
  private static func join(
    _ sum: UnsafePointer<Int32>, to frame: UnsafeMutablePointer<Int16>, _ count: Int, bends: Bool
  ) {
    if bends {
      for index in 0..<count { frame[index] = Int16(clamping: bent(Int32(frame[index]) &+ sum[index])) }
    } else {
      for index in 0..<count { frame[index] = Int16(clamping: Int32(frame[index]) &+ sum[index]) }
    }
  }

  /// Linear up to three quarters of full scale, then flattening toward it: without a gain that must recover, nothing pumps.
  @inline(__always) private static func bent(_ value: Int32) -> Int32 {
    let (knee, room): (Int32, Int32) = (24_576, 8_191)
    let size = abs(value)
    guard size > knee else { return value }
    let over = size &- knee
    let result = knee &+ room &* over / (over &+ room)
    return value < 0 ? 0 &- result : result
  }
}

extension UnsafeMutablePointer<GroupMember> {
  @inline(__always) fileprivate func indexIsValid(_ member: Int) -> Bool { member >= 0 && member < Limits.groupMembers }
}
