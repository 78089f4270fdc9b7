import Glibc

/// What libFuzzer calls for every input. A trap is a finding: bytes from the network must never stop the process.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
  chosen(Array(UnsafeBufferPointer(start: bytes, count: count)))
  return 0
}

typealias FuzzTarget = @Sendable ([UInt8]) -> Void

/// One row per parser that reads the network, and per machine that lives on what others do; Scripts/fuzz reads the names here.
let targets: [String: FuzzTarget] = [
  "sip": fuzzSIP,
  "sip-stream": fuzzSIPStream,
  "sip-agent": fuzzUserAgent,
  "sip-dialog": fuzzDialogs,
  "sdp": fuzzSDP,
  "stun": fuzzSTUN,
  "turn": fuzzTURN,
  "rtp": fuzzRTP,
  "rtcp": fuzzRTCP,
  "receiver": fuzzReceiver,
  "srtp": fuzzSRTP,
  "srtp-stream": fuzzSRTPStream,
  "resp": fuzzRESP,
  "session": fuzzSession,
  "app-json": fuzzAppJSON,
  "jwt": fuzzJWT,
  "number": fuzzNumber,
  "http": fuzzHTTP,
  "websocket": fuzzWebSocket,
  "websocket-client": fuzzWebSocketClient,
  "push": fuzzPush,
  "phone": fuzzPhone,
  "device": fuzzDevice,
  "directory": fuzzDirectory,
  "trace": fuzzTrace,
]

private let chosen: FuzzTarget = {
  let name = getenv("TRUNKLINE_FUZZ").map { String(cString: $0) } ?? ""
  guard let target = targets[name] else {
    print("TRUNKLINE_FUZZ must name one of: \(targets.keys.sorted().joined(separator: " "))")
    exit(2)
  }
  return target
}()
