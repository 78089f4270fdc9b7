import TrunklineBytes
import TrunklineSIP

/// Legs of a process that died, which are still to be closed: a few at a time, because of a thousand messages at once many would
/// be lost.
///
/// | input | effect |
/// |---|---|
/// | `adopt` | the legs are queued; the next batch is due at once |
/// | `nextBatch` | the oldest `Limits.orphansAtOnce` legs; further ones are due after `Interval.orphans` |
/// | `nextBatch`, none queued | no legs, and no deadline |
struct OrphanQueue {
  private var queued: [(leg: OrphanedLeg, credentials: Credentials?)] = []

  mutating func adopt(_ legs: [(leg: OrphanedLeg, credentials: Credentials?)], _ step: inout Step) {
    queued += legs
    step.timers.schedule(.orphans, at: step.now)
  }

  mutating func nextBatch(_ step: inout Step) -> [(leg: OrphanedLeg, credentials: Credentials?)] {
    let batch = Array(queued.prefix(Limits.orphansAtOnce))
    queued.removeFirst(batch.count)
    if !queued.isEmpty { step.timers.schedule(.orphans, at: step.now + Interval.orphans) }
    return batch
  }
}
