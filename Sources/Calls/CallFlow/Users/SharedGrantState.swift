/// What this node knows of the grants in the shared store.
///
/// | input | effect |
/// |---|---|
/// | `read` | all grants were read once; it stays so |
/// | `setUncertain` | this node's copy may lack some, or no longer does; each time it changes |
/// | `report` | true: the digest of the grants that the store lacks is another one than in the last report. The first is 0 |
struct SharedGrantState {
  private(set) var wasRead = false
  private var isUncertain = false
  private var reported: UInt64 = 0

  /// A user may have a grant that is not known here.
  var mayLackGrants: Bool { isUncertain || !wasRead }

  mutating func read() { wasRead = true }
  mutating func setUncertain(_ isUncertain: Bool) { self.isUncertain = isUncertain }

  mutating func report(_ digest: UInt64) -> Bool {
    defer { reported = digest }
    return digest != reported
  }
}
