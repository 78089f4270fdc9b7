import TrunklineAppProtocol
import TrunklineBytes

/// Digits that an app or a program has requested and that are not sent yet, first in, first out.
///
/// | state (kind of the first request) | input | → |
/// |---|---|---|
/// | empty | `add` | a tone is due at once, and those after it; softPause; hardPause |
/// | any other | `add` | same; the request waits. Beyond `Limits.pendingDigits`: refused |
/// | softPause | the deadline | the request is due, and tones after it |
/// | hardPause | `resume` | the same |
/// | empty, softPause | `resume` | same |
/// | any | `removeAll`: the call has ended | empty |
struct DigitQueue {
  private var requests: [CallDTMF] = []
  private var softPause: Instant?

  /// Returns the requests that are due; nil: too many digits wait.
  mutating func add(_ request: CallDTMF, _ step: Step) -> [CallDTMF]? {
    let waiting = requests.reduce(0) { $0 + $1.digits.utf8.count }
    guard waiting + request.digits.utf8.count <= Limits.pendingDigits else { return nil }
    requests.append(request)
    return requests.count == 1 ? start(step) : []
  }

  /// The device's user ends a hard pause.
  mutating func resume(_ step: Step) -> [CallDTMF] { requests.first?.kind == .hardPause ? pop(step) : [] }

  mutating func softPauseExpired(_ step: Step) -> [CallDTMF] { pop(step) }

  /// A tone is due, a soft pause waits, a hard pause waits for `resume`.
  private mutating func start(_ step: Step) -> [CallDTMF] {
    switch requests.first?.kind {
    case .tone: return pop(step)
    case .softPause: softPause = step.now + step.configuration.timers.softPause
    case .hardPause, nil: break
    }
    return []
  }

  private mutating func pop(_ step: Step) -> [CallDTMF] {
    softPause = nil
    guard !requests.isEmpty else { return [] }
    let next = requests.removeFirst()
    return [next] + start(step)
  }

  mutating func removeAll() { (requests, softPause) = ([], nil) }

  var next: DueTimer? { DueTimer(.softPause, softPause) }
}
