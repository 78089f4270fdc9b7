import Foundation

/// A sipp scenario written down step by step, where its test is read. The files in `sipp/` are those that many tests share.
///
///     var carrier = SippScript.caller(["Supported: timer"])
///     carrier.isAnswered(containing: ["Require: timer"])
///     carrier.asks("BYE")
///     let sipp = try Peers.caller(gateway, try carrier.file(gateway, "timer"))
struct SippScript {
  private var steps: [String] = []
  private var references: [String] = []
  private var sequence = 1
  private var contact: String?
  /// sipp called; else it was called.
  private let calls: Bool

  private init(calls: Bool) { self.calls = calls }

  /// sipp calls: its INVITE. `contact`: where it says that it is, in this and later requests; `type`: of its body.
  static func caller(
    _ headers: [String] = [], sdp: String? = sdp(), contact: String? = nil, type: String = "application/sdp"
  ) -> SippScript {
    var script = SippScript(calls: true)
    script.contact = contact
    script.request("INVITE", headers, sdp, "inv1", type)
    return script
  }

  /// sipp is called; the INVITE holds what these expressions describe. Its fields are kept for `answers`.
  static func callee(containing wanted: [String] = []) -> SippScript {
    var script = SippScript(calls: false)
    script.keepInvite(wanted)
    return script
  }

  // MARK: what sipp sends

  /// A description on the port of `-key audio_port`, or on another.
  static func sdp(
    _ formats: String = "0 101", port: String = "[audio_port]", address: String = "[media_ip]", version: Int = 1,
    _ attributes: [String] = ["a=ptime:20", "a=sendrecv"]
  ) -> String {
    let names = [
      "0": "PCMU/8000", "8": "PCMA/8000", "101": "telephone-event/8000", "9": "G722/8000", "96": "opus/48000/2", "98": "L16/8000",
    ]
    let maps = formats.split(separator: " ").compactMap { type in names[String(type)].map { "a=rtpmap:\(type) \($0)" } }
    let head = ["v=0", "o=carrier 1 \(version) IN IP4 [local_ip]", "s=-", "c=IN IP4 \(address)", "t=0 0"]
    return (head + ["m=audio \(port) RTP/AVP \(formats)"] + maps + attributes).joined(separator: "\n")
  }

  /// A request in the dialog; `response` is next.
  mutating func asks(_ method: String, _ headers: [String] = [], sdp: String? = nil, type: String = "application/sdp") {
    sequence += 1
    request(method, headers, sdp, (method == "INVITE" ? "inv" : method.lowercased()) + "\(sequence)", type)
  }

  /// The response to sipp's last request; an INVITE's is acknowledged.
  mutating func response(_ code: Int = 200, containing wanted: [String] = []) {
    let name = lastTransaction
    if name.hasPrefix("inv") { provisionals(name) }
    receive("response=\"\(code)\" response_txn=\"\(name)\"", wanted)
    if name.hasPrefix("inv") { acknowledge(name) }
  }

  /// The 200 to sipp's first INVITE, and its ACK.
  mutating func isAnswered(containing wanted: [String] = []) {
    provisionals("inv1")
    receive("response=\"200\" response_txn=\"inv1\" rrs=\"true\"", wanted)
    acknowledge("inv1")
  }

  /// A response to the gateway's first INVITE. `fork` is another end of the same call, `contact` where it says it is. `proxied`: the
  /// INVITE is the last message, and came with the Via and Record-Route of proxies.
  mutating func answers(
    _ code: Int, _ headers: [String] = [], sdp: String? = nil, fork: String = "one", contact: String? = nil, proxied: Bool = false
  ) {
    let way = proxied ? ["[last_Via:]", "[last_Record-Route:]"] : ["Via: [$via]"]
    let head = ["From: [$from]", "To: [$to];tag=\(fork)", "[last_Call-ID:]", "CSeq: [$cseq]"]
    let own = "Contact: <\(contact ?? "sip:\(fork)@[local_ip]:[local_port]")>"
    send("<send>", ["SIP/2.0 \(code) Said"] + way + head + [own] + headers, sdp)
  }

  /// A response to the gateway's last request.
  mutating func replies(_ code: Int = 200, _ headers: [String] = [], sdp: String? = nil) {
    let head = ["SIP/2.0 \(code) Said", "[last_Via:]", "[last_From:]", "[last_To:]", "[last_Call-ID:]", "[last_CSeq:]"]
    send("<send>", head + ["Contact: <sip:one@[local_ip]:[local_port]>"] + headers, sdp)
  }

  /// Refuses the gateway's INVITE that `keepsOpen` has put aside, and takes the ACK.
  mutating func refusesOpenInvite(_ code: Int) {
    let head = ["SIP/2.0 \(code) Said", "Via: [$via]", "From: [$from]", "To: [$to]", "[last_Call-ID:]", "CSeq: [$cseq]"]
    send("<send>", head, nil)
    receive("request=\"ACK\"", [])
  }

  /// Waits for an INVITE in the dialog and leaves it without a final response.
  mutating func keepsInviteOpen(containing wanted: [String] = []) {
    keepInvite(wanted)
    replies(100)
  }

  /// CANCEL of the first INVITE, whose 487 is then acknowledged.
  mutating func cancels(_ headers: [String]) {
    let head = [
      "CANCEL sip:[service]@[remote_ip]:[remote_port] SIP/2.0", "[last_Via:]", "From: \(ownParty)",
      "To: <sip:[service]@[remote_ip]:[remote_port]>", "Call-ID: [call_id]", "CSeq: 1 CANCEL", "Max-Forwards: 70",
    ]
    send("<send start_txn=\"cancel\">", head + headers, nil)
    receive("response=\"200\" response_txn=\"cancel\"", [])
    receive("response=\"487\" response_txn=\"inv1\"", [])
    acknowledge("inv1")
  }

  /// µ-law octets of a file as RTP from `[rtpstream_audio_port]`, over and over; nil pauses it.
  mutating func speaks(_ file: String?) {
    steps.append("<nop><action><exec rtp_stream=\"\(file.map { $0 + ",-1,0,PCMU/8000" } ?? "pause")\" /></action></nop>")
  }

  // MARK: what it waits for

  /// A request of the gateway's in the dialog.
  mutating func awaits(_ method: String, containing wanted: [String] = []) { receive("request=\"\(method)\"", wanted) }

  /// A provisional response to sipp's own INVITE.
  mutating func expects(_ code: Int, containing wanted: [String] = []) {
    receive("response=\"100\" optional=\"true\" response_txn=\"inv1\"", [])
    receive("response=\"\(code)\" response_txn=\"inv1\" rrs=\"true\"", wanted)
  }

  /// For so long nothing of this kind comes; what does fails the call.
  mutating func expectsNo(_ method: String, milliseconds: Int) {
    let label = "\(steps.count)"
    steps.append("<recv request=\"\(method)\" timeout=\"\(milliseconds)\" ontimeout=\"\(label)\" />")
    steps.append("<nop><action><error message=\"\(method) came within \(milliseconds) ms\" /></action></nop>")
    steps.append("<label id=\"\(label)\" />")
  }

  /// It comes within so long.
  mutating func expectsWithin(_ method: String, milliseconds: Int, containing wanted: [String] = []) {
    receive("request=\"\(method)\" timeout=\"\(milliseconds)\"", wanted)
  }

  mutating func pauses(_ milliseconds: Int) { steps.append("<pause milliseconds=\"\(milliseconds)\" />") }

  // MARK: the file

  /// Writes it down in the gateway's folder; gives the path, which `Peers.caller` and `Peers.callee` take for a scenario.
  func file(_ gateway: GatewayUnderTest, _ name: String) throws -> String {
    let path = gateway.folder + "/" + name + ".xml"
    let use = references.isEmpty ? "" : "<Reference variables=\"\(references.joined(separator: ","))\" />\n"
    let text =
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<scenario name=\"\(name)\">\n\(steps.joined(separator: "\n"))\n\(use)</scenario>\n"
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    return path
  }

  private var lastTransaction = "inv1"
  private var ownParty: String {
    calls ? "\"Carrier\" <sip:15550009999@[local_ip]:[local_port]>;tag=[pid]c[call_number]" : "[$to];tag=one"
  }
  private var otherParty: String {
    calls ? "<sip:[service]@[remote_ip]:[remote_port]>[peer_tag_param]" : "[$from]"
  }

  private mutating func request(
    _ method: String, _ headers: [String], _ body: String?, _ name: String, _ type: String = "application/sdp"
  ) {
    let isFirst = sequence == 1
    let own = isFirst ? "sip:[service]@[remote_ip]:[remote_port]" : calls ? "[next_url]" : "[$contact]"
    let head = [
      "\(method) \(own) SIP/2.0", "Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]", isFirst ? "" : "[routes]",
      "From: \(ownParty)", "To: \(isFirst ? "<sip:[service]@[remote_ip]:[remote_port]>" : otherParty)", "Call-ID: [call_id]",
      "CSeq: \(sequence) \(method)", "Contact: <\(contact ?? "sip:one@[local_ip]:[local_port];transport=[transport]")>",
      "Max-Forwards: 70",
    ]
    lastTransaction = name
    send("<send retrans=\"500\" start_txn=\"\(name)\">", head.filter { !$0.isEmpty } + headers, body, type)
  }

  private mutating func keepInvite(_ wanted: [String]) {
    var kept = ["Via", "From", "To", "CSeq"].map { name in
      "<ereg regexp=\"[^ ].*\" search_in=\"hdr\" header=\"\(name):\" check_it=\"true\" assign_to=\"\(name.lowercased())\" />"
    }
    kept.append("<ereg regexp=\"sip:[^>;]*\" search_in=\"hdr\" header=\"Contact:\" check_it=\"true\" assign_to=\"contact\" />")
    references += ["via", "from", "to", "cseq", "contact"].filter { !references.contains($0) }
    let actions = (kept + checks(wanted)).joined(separator: "\n")
    steps.append("<recv request=\"INVITE\" rrs=\"true\">\n<action>\n\(actions)\n</action>\n</recv>")
  }

  private mutating func acknowledge(_ name: String) {
    let number = name == "inv1" ? 1 : sequence
    let head = [
      "ACK \(calls ? "[next_url]" : "[$contact]") SIP/2.0", "Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]",
      "[routes]", "From: \(ownParty)", "To: \(otherParty)", "Call-ID: [call_id]", "CSeq: \(number) ACK", "Max-Forwards: 70",
    ]
    send("<send ack_txn=\"\(name)\">", head, nil)
  }

  private mutating func provisionals(_ name: String) {
    for code in [100, 180, 183] { steps.append("<recv response=\"\(code)\" optional=\"true\" response_txn=\"\(name)\" />") }
  }

  private mutating func send(_ tag: String, _ lines: [String], _ body: String?, _ type: String = "application/sdp") {
    let kind = body == nil ? [] : ["Content-Type: \(type)"]
    let head = lines + kind + ["Content-Length: \(body == nil ? "0" : "[len]")", ""]
    steps.append("\(tag)\n<![CDATA[\n" + (head + [body ?? "", ""]).joined(separator: "\n") + "]]>\n</send>")
  }

  private mutating func receive(_ what: String, _ wanted: [String]) {
    let checks = checks(wanted)
    let action = checks.isEmpty ? "/>" : ">\n<action>\n\(checks.joined(separator: "\n"))\n</action>\n</recv>"
    steps.append("<recv \(what) \(action)")
  }

  private mutating func checks(_ wanted: [String]) -> [String] {
    wanted.map { expression in
      references.append("x\(references.count)")
      let escaped = expression.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
      return "<ereg regexp=\"\(escaped)\" search_in=\"msg\" check_it=\"true\" assign_to=\"\(references.last ?? "")\" />"
    }
  }
}
