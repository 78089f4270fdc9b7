import TrunklineRTP

/// The other sessions on this thread that receive this session's trunk audio.
///
/// | operation | effect |
/// |---|---|
/// | `bridge` | the other half of a diverted call; it replaces an earlier one |
/// | `learn` its trunk's band | kept; true if it differs from the last |
/// | `join` a group, or nil to leave | kept; true if it differs from the last |
struct Partners {
  /// The other half of a diverted call.
  private(set) var bridge: MediaSessionID?
  /// The band of the other half's trunk, if known.
  private(set) var bridgeBand: AudioBand?
  /// The call's group.
  private(set) var group: MediaGroupID?

  mutating func bridge(to other: MediaSessionID) { bridge = other }

  mutating func learn(_ band: AudioBand?) -> Bool {
    guard band != bridgeBand else { return false }
    bridgeBand = band
    return true
  }

  mutating func join(_ next: MediaGroupID?) -> Bool {
    guard group != next else { return false }
    group = next
    return true
  }
}
