import Testing
import TrunklineBytes
import TrunklineSIP

@testable import TrunklineSIPDialogs

/// 14 methods × their senders: no 2xx outside policy, no event that could become a call, and the next OPTIONS is answered.
/// Strangers do not get this far (Tests/SIPTransport).
@Suite struct PolicyMatrixTests {
  static let methods = [
    "INVITE", "ACK", "CANCEL", "BYE", "OPTIONS", "REGISTER", "PRACK", "UPDATE", "INFO", "REFER", "SUBSCRIBE", "NOTIFY", "MESSAGE",
    "PUBLISH",
  ]

  enum Sender: CaseIterable, Sendable {
    /// The trunk, outside any dialog.
    case trunk
    /// The trunk, in a dialog that does not exist.
    case trunkWithInventedTag
    /// Another trunk at another address, with the tags of a live call. (At the same address it is the same peer.)
    case otherTrunk
    /// The trunk's own address, with a From tag that is not the caller's.
    case thirdParty
  }

  @Test(arguments: methods, Sender.allCases) func `no method gets a 2xx outside policy`(method: String, sender: Sender) throws {
    var (wire, leg, tag, _) = try Wire.confirmed(rules: TrunkRules(allowsTransfer: true))
    let to = sender == .trunk ? nil : sender == .trunkWithInventedTag ? "invented" : tag
    let text = request(
      method, branch: "z9hG4bKmatrix", callID: sender == .trunk ? "new-call" : "call-1",
      from: sender == .thirdParty ? "someone" : "77", toTag: to, cseq: 9,
      extra: [
        "Contact: <sip:evil@203.0.113.66>", "Refer-To: <sip:1900@x>", "Event: refer", "RAck: 1 1 INVITE",
        "Authorization: Digest username=\"x\", realm=\"r\", nonce=\"n\", uri=\"sip:x\", response=\"00\"",
      ].filter { method != "INVITE" || !$0.hasPrefix("Contact") },
      sdp: method == "INVITE" ? offer : nil)
    let elsewhere = Flow(transport: .udp, local: gatewayAddress, remote: SocketAddress("203.0.113.99:5060")!)
    let isOther = sender == .otherTrunk
    let replies = wire.receive(text, on: isOther ? elsewhere : nil, trunk: isOther ? "other" : "carrier")
    let codes = replies.compactMap(\.statusCode)
    let isServed = sender == .trunk && (method == "OPTIONS" || method == "INVITE")
    #expect(codes.allSatisfy { $0 >= 300 || (isServed && [100, 200].contains($0)) }, "\(codes)")
    #expect(replies.allSatisfy { !$0.isRequest }, "nothing is sent on for anybody")
    let names = wire.events().map(\.name)
    #expect(names.allSatisfy { $0.hasPrefix("refused") || (isServed && $0 == "invite") }, "\(names)")
    #expect(wire.agent.legs[leg]?.value.phase == .confirmed, "the call that runs is untouched")
    #expect(wire.receive(request("OPTIONS", branch: "z9hG4bKafter")).map(\.statusCode) == [200])
  }
}
