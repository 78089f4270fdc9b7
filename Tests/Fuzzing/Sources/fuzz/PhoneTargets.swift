/// Server frames for a phone, with ticks, taps, pushes and other inputs between them: each line is a step.
@Sendable func fuzzPhone(_ bytes: [UInt8]) {
  var phone = FuzzedPhone(obliges: false)
  for line in bytes.split(separator: UInt8(ascii: "\n"), maxSplits: 64, omittingEmptySubsequences: true) {
    let digit = line.dropFirst().first ?? 0
    phone.step(line[line.startIndex], digit, Array(line.dropFirst(2)))
  }
  phone.finish()
}

/// A trace of the audio device: activation, interruption, reset, route, its answers to requests and their time, in calls of a
/// gateway that fulfils each request. Two bytes are a step.
@Sendable func fuzzDevice(_ bytes: [UInt8]) {
  var phone = FuzzedPhone(obliges: true)
  for letter in "bow" {
    phone.step(
      letter.asciiValue ?? 0, 0,
      letter == "w"
        ? Array(
          #"{"sid":"s","resumeToken":"r","resumed":false,"replayFrom":1,"time":0,"hb":15000,"ice":[],"calls":[],"dirVersion":0,"caps":[]}"#
            .utf8)
        : [])
  }
  // the steps for calls and audio; a refusal precedes the step that causes the request
  let letters = Array("OaCEvVRyFKhm%&PCz*=J:.hNi<>".utf8)
  for index in stride(from: 0, to: min(bytes.count - bytes.count % 2, 256), by: 2) {
    let (kind, digit) = (
      letters.contains(bytes[index]) ? bytes[index] : letters[Int(bytes[index]) % letters.count], bytes[index + 1]
    )
    switch kind {
    case UInt8(ascii: "<"): phone.refuse(.configure)
    case UInt8(ascii: ">"): phone.refuse(.start)
    case UInt8(ascii: "O"):
      phone.step(
        kind, digit,
        Array(
          #"{"from":{"k":"phone","h":"+1"},"to":{"k":"phone","h":"+2"},"acct":"a","video":false,"sdp":"v=0","gen":1,"exp":0}"#
            .utf8))
    case UInt8(ascii: "C"): phone.step(kind, digit, Array(#"{"at":1,"codec":"opus"}"#.utf8))
    case UInt8(ascii: "E"): phone.step(kind, digit, Array(#"{"reason":"remoteHangup"}"#.utf8))
    case UInt8(ascii: "P"): phone.step(kind, digit, Array(#"{"stage":"early","at":1}"#.utf8))
    default: phone.step(kind, digit)
    }
  }
  phone.finish()
}
