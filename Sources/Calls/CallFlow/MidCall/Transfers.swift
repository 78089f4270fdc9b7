import CallModel
import TrunklineAppProtocol

/// Transfers of a call: those that the trunk requests and the call follows, and our own REFER, one at a time.
///
/// | state | input | → | returns |
/// |---|---|---|---|
/// | any | `follow` | same | – ; one hop less is left |
/// | idle | `ask` | asked | – |
/// | asked | `answered` below 300, `reported` before the end | asked | trying, or ringing from 180 on |
/// | asked | `answered` from 300 on; `reported` 300 or more, or the end without a code | idle | failed |
/// | asked | `reported` 2xx | idle | done |
/// | idle | `answered`, `reported` | idle | nil: not ours |
struct Transfers {
  /// The latest ones, oldest first.
  private(set) var made: [CallRecord.Transfer] = []
  /// Max-Forwards of the INVITE that made the call; a leg made for it sends one less.
  private(set) var maxForwards: Int
  /// Our own REFER is on its way.
  private(set) var isAsked = false
  /// Diversions, REFERs and Replaces that this call has followed.
  private var followed: Int

  init(maxForwards: Int = 70, followed: Int = 0) { (self.maxForwards, self.followed) = (maxForwards, followed) }

  /// A leg of ours may be made for it.
  var hasForwards: Bool { maxForwards > 1 }
  var mayBeReplaced: Bool { followed < Limits.diversions }
  var mayFollow: Bool { mayBeReplaced && hasForwards }

  /// A REFER, or an INVITE with Replaces, whose Max-Forwards counts from then on.
  mutating func follow(_ transfer: CallRecord.Transfer, maxForwards: Int = .max) {
    followed += 1
    self.maxForwards = min(self.maxForwards, maxForwards)
    begin(transfer)
  }

  mutating func ask(_ transfer: CallRecord.Transfer) {
    isAsked = true
    begin(transfer)
  }

  private mutating func begin(_ transfer: CallRecord.Transfer) {
    made.append(transfer)
    if made.count > Limits.recordedTransfers { made.removeFirst() }
  }

  /// The last one has a leg.
  mutating func invited(over trunk: String, sipCallID: String?) {
    guard let last = made.indices.last else { return }
    (made[last].trunk, made[last].sipCallId) = (trunk, sipCallID)
  }

  /// - Parameter code: the final status; nil: it was not reported.
  mutating func end(_ code: Int?) {
    if let last = made.indices.last, made[last].sip == nil { made[last].sip = code }
  }

  /// The trunk's answer to our REFER.
  mutating func answered(_ code: Int) -> CallTransferred.Status? { progressed(code < 300 ? .trying : .failed, code) }

  /// A NOTIFY of our REFER. Only a 2xx completes the transfer.
  mutating func reported(_ code: Int?, isFinal: Bool) -> CallTransferred.Status? {
    guard isFinal else { return progressed((code ?? 100) < 180 ? .trying : .ringing, code) }
    guard let code, code >= 200 else { return progressed(.failed, nil) }
    return progressed(code < 300 ? .done : .failed, code)
  }

  private mutating func progressed(_ status: CallTransferred.Status, _ code: Int?) -> CallTransferred.Status? {
    guard isAsked else { return nil }
    if status == .failed || status == .done {
      isAsked = false
      end(code)
    }
    return status
  }
}
