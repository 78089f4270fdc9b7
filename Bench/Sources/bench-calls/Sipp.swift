import BenchKit
import Foundation

/// A run of sipp as the carrier: calls at a stated rate, and what became of them.
struct SippRun {
  var completed = 0
  var failed = 0
  var seconds = 0.0
  /// Milliseconds from INVITE to the final response, by what it was (`answered`, `refused`, `busy`).
  var times: [String: [Double]] = [:]

  var perSecond: Double { seconds > 0 ? Double(completed) / seconds : 0 }

  func quantile(_ share: Double, _ name: String) -> Double {
    let sorted = (times[name] ?? []).sorted()
    return sorted.isEmpty ? 0 : sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))]
  }

  init(_ sipp: String, _ scenario: String, to number: String, _ gateway: MeasuredGateway, rate: Int, calls: Int) throws {
    let folder = gateway.folder.appendingPathComponent("sipp-\(UUID().uuidString.prefix(8))")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    try Data(scenario.utf8).write(to: folder.appendingPathComponent("s.xml"))
    let limit = calls / rate + 12
    var arguments = [
      sipp, "127.0.0.1:\(gateway.sip)", "-sf", "s.xml", "-s", number, "-i", "127.0.0.1", "-p", "\(gateway.carrier)", "-r",
      "\(rate)",
      "-m", "\(calls)", "-l", "20000", "-nd", "-nostdin", "-timeout", "\(limit)", "-trace_stat", "-stf", "stat.csv", "-fd", "1",
      "-trace_rtt", "-rtt_freq", "1",
    ]
    if let cores = gateway.coresForLoad, let taskset = Program.find("taskset") { arguments = [taskset, "-c", cores] + arguments }
    let process = Process()
    process.executableURL = URL(fileURLWithPath: arguments.removeFirst())
    (process.arguments, process.currentDirectoryURL) = (arguments, folder)
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    try read(folder)
    try? FileManager.default.removeItem(at: folder)
  }

  private mutating func read(_ folder: URL) throws {
    let text = try String(contentsOf: folder.appendingPathComponent("stat.csv"), encoding: .utf8)
    let rows = text.split(separator: "\n").map { $0.split(separator: ";", omittingEmptySubsequences: false).map(String.init) }
    guard let names = rows.first, let last = rows.last, rows.count > 1 else { throw BenchError(text: "sipp wrote no statistics") }
    func value(_ name: String) -> String { names.firstIndex(of: name).flatMap { $0 < last.count ? last[$0] : nil } ?? "" }
    completed = Int(value("SuccessfulCall(C)")) ?? 0
    failed = Int(value("FailedCall(C)")) ?? 0
    // hours:minutes:seconds
    let clock = value("ElapsedTime(C)").split(separator: ":").compactMap { Double($0) }
    let rough = clock.prefix(3).reduce(0) { $0 * 60 + $1 }
    // Date_ms;response_time_ms;rtd_name
    var ends: [Double] = []
    for file in try FileManager.default.contentsOfDirectory(atPath: folder.path) where file.hasSuffix("_rtt.csv") {
      for line in try String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8).split(separator: "\n").dropFirst()
      {
        let words = line.split(separator: ";")
        guard words.count >= 3, let at = Double(words[0]), let took = Double(words[1]) else { continue }
        times[String(words[2]), default: []].append(took)
        ends.append(at)
      }
    }
    // sipp's own clock has whole seconds; from the first final response to the last is better where there were many.
    let exact = ((ends.max() ?? 0) - (ends.min() ?? 0)) / 1_000
    seconds = exact > 0.1 ? exact : rough
  }
}

/// What sipp plays. Each ends well with 503 too, so that refusals are counted apart by their times.
enum Scenario {
  /// INVITE, 480, ACK.
  static var unreachable: String { scenario(final: 480, as: "busy", then: acknowledge(ofRefusal: true)) }

  /// INVITE, 200, ACK, a pause, BYE, 200.
  static func answered(milliseconds: Int) -> String {
    let pause = milliseconds > 0 ? "<pause milliseconds=\"\(milliseconds)\"/>\n" : ""
    return scenario(
      final: 200, as: "answered",
      then: acknowledge(ofRefusal: false) + pause + request("BYE", 2, retransmits: true) + "<recv response=\"200\"/>\n")
  }

  private static func scenario(final code: Int, as name: String, then rest: String) -> String {
    """
    <?xml version="1.0" encoding="ISO-8859-1" ?>
    <scenario name="\(name)">
    <nop start_rtd="refused"/>
    <send retrans="500" start_rtd="\(name)"><![CDATA[
    INVITE sip:[service]@[remote_ip]:[remote_port] SIP/2.0
    Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]
    From: <sip:+15557650000@[local_ip]>;tag=[call_number]
    To: <sip:[service]@[remote_ip]>
    Call-ID: [call_id]
    CSeq: 1 INVITE
    Contact: <sip:carrier@[local_ip]:[local_port]>
    Max-Forwards: 70
    Content-Type: application/sdp
    Content-Length: [len]

    v=0
    o=- 1 1 IN IP4 [local_ip]
    s=-
    c=IN IP4 [local_ip]
    t=0 0
    m=audio 6000 RTP/AVP 0 101
    a=rtpmap:0 PCMU/8000
    a=rtpmap:101 telephone-event/8000
    ]]></send>
    <recv response="100" optional="true"/>
    <recv response="180" optional="true"/>
    <recv response="503" optional="true" rtd="refused" next="1"/>
    <recv response="\(code)" rtd="\(name)"/>
    \(rest)<nop next="2"/>
    <label id="1"/>
    \(acknowledge(ofRefusal: true))<label id="2"/>
    </scenario>

    """
  }

  private static func acknowledge(ofRefusal: Bool) -> String {
    // The ACK of a refusal belongs to the INVITE's transaction: the same branch.
    request("ACK", 1, via: ofRefusal ? "[last_Via:]" : nil)
  }

  private static func request(_ method: String, _ sequence: Int, via: String? = nil, retransmits: Bool = false) -> String {
    """
    <send\(retransmits ? " retrans=\"500\"" : "")><![CDATA[
    \(method) sip:[service]@[remote_ip]:[remote_port] SIP/2.0
    \(via ?? "Via: SIP/2.0/[transport] [local_ip]:[local_port];branch=[branch]")
    From: <sip:+15557650000@[local_ip]>;tag=[call_number]
    [last_To:]
    Call-ID: [call_id]
    CSeq: \(sequence) \(method)
    Max-Forwards: 70
    Content-Length: 0

    ]]></send>

    """
  }
}
