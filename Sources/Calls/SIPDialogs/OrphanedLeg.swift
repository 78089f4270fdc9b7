import TrunklineBytes
import TrunklineSIP

/// The data that closes a leg of a dead process: its INVITE or its dialog, as the journal keeps them (docs/design/sip.md, After a
/// kill).
///
/// Some 400 to 900 bytes as JSON. Contains no credentials.
public struct OrphanedLeg: Sendable, Equatable, Codable {
  public enum Phase: String, Sendable, Codable, CaseIterable {
    /// An INVITE of the peer without a final response: 503, so that the peer tries another route or ends its call.
    case ringing
    /// An INVITE of ours without a final response: CANCEL; a 2xx that crosses it is acknowledged and ended.
    case calling
    /// BYE.
    case confirmed
  }

  public let phase: Phase
  public let trunk: String
  let transport: TransportProtocol
  private(set) var local: String
  private(set) var remote: String
  /// Start line and the fields from which responses, CANCEL and ACK are written; nil once there is a dialog.
  var invite: String?
  /// Our tag in the 503.
  var tag: String?
  var dialog: Dialog?

  /// Nil: an invalid address, from a journal of another version.
  public var flow: Flow? {
    guard let local = SocketAddress(local), let remote = SocketAddress(remote) else { return nil }
    return Flow(transport: transport, local: local, remote: remote)
  }

  /// Whether requests can be made from it. A journal may be damaged, and a client with write access to a cluster's shared store
  /// may write anything: no line end gets into our fields, and no CSeq exceeds its limit.
  public var isWellFormed: Bool {
    guard flow != nil, Self.isPlain(trunk), Self.isPlain(tag ?? "") else { return false }
    guard phase == .confirmed else { return invite != nil }
    guard let dialog, dialog.routeSet.count <= Limits.routes else { return false }
    let texts = [
      dialog.callID, dialog.localTag, dialog.remoteTag, dialog.localParty, dialog.remoteParty, dialog.remoteTarget,
    ]
    return dialog.localSequence <= Limits.orphanSequence && (texts + dialog.routeSet).allSatisfy(Self.isPlain)
  }

  private static func isPlain(_ text: String) -> Bool { text.utf8.allSatisfy { $0 >= 32 && $0 != 127 } }

  /// The same, closed from another address: by a node that acts for the dead one.
  public func moved(to flow: Flow) -> OrphanedLeg {
    var out = self
    (out.local, out.remote) = (flow.local.description, flow.remote.description)
    return out
  }

  private init(_ phase: Phase, trunk: String, flow: Flow) {
    (self.phase, self.trunk, transport) = (phase, trunk, flow.transport)
    (local, remote) = (flow.local.description, flow.remote.description)
  }

  /// - Parameter request: of the server or client transaction of an INVITE without final response.
  init(_ phase: Phase, of leg: Leg, flow: Flow, request: Message, topVia: String?) {
    self.init(phase, trunk: leg.trunk, flow: flow)
    invite = Self.fields(request, topVia: topVia)
    if phase == .ringing { tag = leg.dialog.localTag }
  }

  init(confirmed leg: Leg) {
    self.init(.confirmed, trunk: leg.trunk, flow: leg.flow)
    dialog = leg.dialog
    // Its connection ends with the process.
    dialog?.followsConnection = nil
  }

  /// - Parameter topVia: replaces the first Via, with `received` and `rport`.
  private static func fields(_ message: Message, topVia: String?) -> String? {
    guard case .request(_, _, let uri) = message.startLine else { return nil }
    var writer = MessageWriter(method: message.methodName, uri: message.text(uri))
    var isFirst = true
    for field in message.fields {
      switch field.name {
      case .via:
        if isFirst, let topVia { writer.field(.via, topVia) } else { writer.copy(field, of: message) }
        isFirst = false
      case .route, .from, .to, .callID, .cseq: writer.copy(field, of: message)
      default: continue
      }
    }
    return String(decoding: writer.finish(), as: UTF8.self)
  }

  /// Removes the caller's number and name: if a call withholds them, neither is stored in a file. The tag, by which peers know a
  /// dialog, is kept.
  mutating func withholdCaller() {
    let anonymous = "\"Anonymous\" <sip:anonymous@anonymous.invalid>"
    if let party = dialog?.remoteParty {
      let tag = dialog?.remoteTag ?? ""
      dialog?.remoteParty = tag.isEmpty ? party : "\(anonymous);tag=\(tag)"
    }
    guard let invite, let message = try? Message(Array(invite.utf8)), let from = message.field(.from) else { return }
    let tag = ((try? message.from)??.tag).map(message.text)
    self.invite = invite.replacing(
      message.text(from.value), with: anonymous + (tag.map { ";tag=\($0)" } ?? ""), maxReplacements: 1)
  }
}
