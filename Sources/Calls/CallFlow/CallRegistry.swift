import AppSessions
import CallModel
import Devices
import TrunklineBytes
import TrunklineMediaSession
import TrunklineSIPDialogs

/// The calls of this node, and what leads to them: leg, media session, user, age, deadline.
///
/// | input | effect |
/// |---|---|
/// | `insert` | the call is found by its first leg, its session and the users that it rings for; a second insert changes nothing |
/// | `change` | changes a call in place; its deadline is that of its next timer from then on; unknown: nil |
/// | `attach` | the leg or session leads to the call. A leg may lead to a call that is yet to be inserted (it is being located) |
/// | `detach` | the leg leads nowhere; also after its call |
/// | `add` | the call is found by one more user, once; unknown: no effect |
/// | `popDue`, `popDueTimer` | a call whose deadline passed, and its timers that did, one by one; after the last the next is its deadline |
/// | `remove` | the call as it was; its sessions, users and deadline lead nowhere. Its legs do until `detach`: their events may follow |
struct CallRegistry {
  private var calls: [CallID: Call] = [:]
  /// The ids of `calls`, oldest first.
  private var order = OrderedKeys<CallNumber>()
  private var ofLeg: [LegID: CallID] = [:]
  private var ofSession: [MediaSessionID: CallID] = [:]
  /// Never empty lists.
  private var ofUser: [String: [CallID]] = [:]
  private var deadlines = DeadlineQueue<CallID>()

  // MARK: reading

  /// Calls that live or wait for their last statistics.
  var count: Int { calls.count }
  /// In any order.
  var ids: [CallID] { Array(calls.keys) }
  /// Legs that lead to a call, in any order.
  var legs: [LegID] { Array(ofLeg.keys) }
  /// No call is left, and nothing that leads to one but `legs`.
  var isEmpty: Bool { calls.isEmpty && ofSession.isEmpty && ofUser.isEmpty && deadlines.count == 0 }
  var nextDeadline: Instant? { deadlines.next }

  /// A copy, which costs about a hundred references.
  subscript(id: CallID) -> Call? { calls[id] }

  func id(of leg: LegID) -> CallID? { ofLeg[leg] }
  func id(of session: MediaSessionID) -> CallID? { ofSession[session] }
  /// In the order in which the user got them.
  func ids(of user: String) -> [CallID] { ofUser[user] ?? [] }
  func count(of user: String) -> Int { ofUser[user]?.count ?? 0 }
  /// The calls after the given one, oldest first; nil: from the first.
  func walk(after last: CallNumber?) -> OrderedKeys<CallNumber>.Walk { order.walk(after: last) }

  // MARK: calls

  mutating func insert(_ call: Call) {
    guard calls.index(forKey: call.id) == nil else { return }
    calls[call.id] = call
    order.insert(CallNumber(call))
    attach(call.trunkLeg.id, to: call.id)
    attach(call.session, to: call.id)
    for user in call.users.ringing { add(user, to: call.id) }
  }

  /// In place: nothing is copied. The body has no access to other calls.
  @discardableResult mutating func change<Result>(_ id: CallID, _ body: (inout Call) -> Result) -> Result? {
    guard let index = calls.index(forKey: id) else { return nil }
    let result = body(&calls.values[index])
    schedule(id, index)
    return result
  }

  /// As `change`, but the body changes nothing: it is `inout` because a getter would copy the call.
  mutating func read<Result>(_ id: CallID, _ body: (inout Call) -> Result) -> Result? {
    guard let index = calls.index(forKey: id) else { return nil }
    return body(&calls.values[index])
  }

  /// As `change` for one leg; nil: it leads to no call, or its call no longer has it.
  @discardableResult mutating func change<Result>(_ leg: LegID, _ body: (inout TrunkLeg) -> Result) -> Result? {
    guard let owner = ofLeg[leg] else { return nil }
    return change(owner) { call in call.legs.firstIndex { $0.id == leg }.map { body(&call.legs[$0]) } } ?? nil
  }

  mutating func remove(_ id: CallID) -> Call? {
    guard let call = calls.removeValue(forKey: id) else { return nil }
    order.remove(CallNumber(call))
    for leg in call.legs { if let session = leg.session { ofSession[session] = nil } }
    for user in call.users.concerned {
      ofUser[user]?.removeAll { $0 == id }
      if ofUser[user]?.isEmpty ?? false { ofUser[user] = nil }
    }
    deadlines.cancel(id)
    return call
  }

  // MARK: what leads to them

  mutating func attach(_ leg: LegID, to id: CallID) { ofLeg[leg] = id }
  mutating func attach(_ session: MediaSessionID, to id: CallID) { ofSession[session] = id }
  mutating func detach(_ leg: LegID) { ofLeg[leg] = nil }

  mutating func add(_ user: String, to id: CallID) {
    guard calls.index(forKey: id) != nil, ofUser[user]?.contains(id) != true else { return }
    ofUser[user, default: []].append(id)
  }

  // MARK: deadlines

  /// The call with the earliest deadline that has passed; `popDueTimer` follows until it returns nil.
  mutating func popDue(at now: Instant) -> CallID? { deadlines.popDue(at: now) }

  mutating func popDueTimer(of id: CallID, at now: Instant) -> CallTimer? {
    guard let index = calls.index(forKey: id) else { return nil }
    if let timer = calls.values[index].popDue(at: now) { return timer }
    schedule(id, index)
    return nil
  }

  /// Not inlined: `change` is specialised for each of its callers' closures.
  @inline(never) private mutating func schedule(_ id: CallID, _ index: Dictionary<CallID, Call>.Index) {
    deadlines.schedule(id, at: Self.nextTimer(&calls.values[index]))
  }

  /// `inout`, as a getter of the dictionary would copy the call.
  private static func nextTimer(_ call: inout Call) -> Instant? { call.nextDeadline }
}
