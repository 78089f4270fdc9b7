import HTTP
import Testing
import TrunklineBytes

/// All steps of a reader that gets `pieces` one after the other, up to the first refusal.
private func steps(_ pieces: [[UInt8]], bodyBytes: Int = 1_000) -> [RequestReader.Step] {
  var reader = RequestReader(bodyBytes: bodyBytes)
  var out: [RequestReader.Step] = []
  for piece in pieces {
    piece.withUnsafeBytes { reader.append($0) }
    while true {
      let step = reader.next()
      if step == .needsMore { break }
      out.append(step)
      if case .refused = step { return out }
    }
  }
  return out
}
private func steps(_ text: String, bodyBytes: Int = 1_000) -> [RequestReader.Step] {
  steps([Array(text.utf8)], bodyBytes: bodyBytes)
}

private func refusal(_ text: String) -> Int? {
  for step in steps(text) { if case .refused(let refusal) = step { return refusal.status } }
  return nil
}

@Suite struct RequestReaderTests {
  @Test func `the most of a body is each request's own, by its head; a long one in many pieces is whole`() {
    var reader = RequestReader { $0.target.path == "/long" ? 300_000 : 10 }
    func give(_ text: String) -> RequestReader.Step {
      Array(text.utf8).withUnsafeBytes { reader.append($0) }
      return reader.next()
    }
    #expect(give("POST /long HTTP/1.1\r\nHost: a\r\nContent-Length: 300000\r\n\r\n") == .needsMore)
    var last = RequestReader.Step.needsMore
    for _ in 0..<300 { last = give(String(repeating: "x", count: 1_000)) }
    guard case .request(let request) = last else { return #expect(Bool(false), "\(last)") }
    #expect(request.body.count == 300_000)
    guard case .refused(let refusal) = give("POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\n") else {
      return #expect(Bool(false), "the next request has the long one's limit")
    }
    #expect(refusal.status == 413)
  }

  @Test func `a request's parts`() throws {
    let text = "GET /a%20b/c?x=1&y=%41 HTTP/1.1\r\nHost: phone.example:8080\r\nX-Two:  a \r\nx-two: b,c\t\r\n\r\n"
    guard case .request(let request)? = steps(text).first else { throw Missing() }
    #expect(request.head.method == "GET")
    #expect(request.head.target.path == "/a%20b/c" && request.head.target.query == "x=1&y=%41")
    #expect(request.head.target.segments.map(\.text) == ["a b", "c"])
    #expect(request.head.target.pairs == [.init(name: "x", value: "1"), .init(name: "y", value: "A")])
    #expect(request.head.host == "phone.example:8080")
    #expect(request.head.all("x-two") == ["a", "b,c"])
    #expect(request.head.list("x-two") == ["a", "b", "c"])
    #expect(request.head.keepsAlive)
    #expect(request.body.isEmpty)
  }

  @Test func `the absolute form's host goes before the field's (RFC 9112 §3.2.2)`() throws {
    guard case .request(let request)? = steps("GET http://one.example?q HTTP/1.1\r\nHost: two.example\r\n\r\n").first else {
      throw Missing()
    }
    #expect(request.head.host == "one.example")
    #expect(request.head.target.path == "/" && request.head.target.segments.isEmpty)
    #expect(request.head.target.query == "q")
  }

  /// Pipelined requests with bodies of both kinds, at every split into two and octet by octet: the same requests come out.
  @Test func `any split of pipelined requests gives the same requests`() {
    let kinds = [
      "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "POST /b HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
      "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n02\r\nde\r\n0\r\nT: 1\r\n\r\n",
    ]
    for first in kinds {
      for second in kinds {
        for third in kinds {
          let octets = Array((first + second + third).utf8)
          let whole = steps([octets])
          #expect(whole.count == 3 && whole.allSatisfy { if case .request = $0 { true } else { false } })
          for cut in 1..<octets.count {
            #expect(steps([Array(octets[..<cut]), Array(octets[cut...])]) == whole, "cut at \(cut)")
          }
          #expect(steps(octets.map { [$0] }) == whole)
        }
      }
    }
  }

  @Test func `bodies arrive as sent`() {
    let text =
      "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\nA\r\n0123456789\r\n1\r\nx\r\n0\r\n\r\n"
      + "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"
    let bodies = steps(text).compactMap { step -> String? in
      if case .request(let request) = step { String(decoding: request.body, as: UTF8.self) } else { nil }
    }
    #expect(bodies == ["0123456789x", "abc"])
  }

  @Test func `100-continue is expected once, and not to a client that did not wait`() {
    let head = "POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n"
    #expect(steps([Array(head.utf8), Array("h".utf8), Array("i".utf8)]).map(\.name) == ["continueExpected", "request"])
    #expect(steps(head + "hi").map(\.name) == ["request"])
    #expect(refusal(head.replacing("100-continue", with: "200-ok")) == 417)
  }

  /// Requests that two parsers could read in two ways (RFC 9112 §11.2), and texts that are not HTTP.
  @Test(arguments: [
    ("length beside chunked", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    ("two lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\nabc", 400),
    ("a list of lengths", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3, 3\r\n\r\nabc", 400),
    ("a signed length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +3\r\n\r\nabc", 400),
    ("a negative length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\n", 400),
    ("a huge length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999999999999\r\n\r\n", 400),
    ("an empty length", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\r\n\r\n", 400),
    ("a long body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1001\r\n\r\n", 413),
    ("a long chunk", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n", 413),
    ("another coding", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
    ("a coding that looks like chunked", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: xchunked\r\n\r\n", 501),
    ("two codings", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n", 501),
    ("chunked in 1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
    ("a chunk size with a sign", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n+3\r\nabc\r\n0\r\n\r\n", 400),
    ("a chunk longer than it says", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nabc\r\n0\r\n\r\n", 400),
    ("a chunk line with LF alone", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\nab\r\n0\r\n\r\n", 400),
    ("no host", "GET / HTTP/1.1\r\n\r\n", 400), ("two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", 400),
    ("a host with a path", "GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
    ("a host with user information", "GET / HTTP/1.1\r\nHost: x@a\r\n\r\n", 400),
    ("a folded line", "GET / HTTP/1.1\r\nHost: a\r\nX: 1\r\n 2\r\n\r\n", 400),
    ("a space before a colon", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length : 3\r\n\r\n", 400),
    ("a line without a colon", "GET / HTTP/1.1\r\nHost: a\r\nrubbish\r\n\r\n", 400),
    ("a field without a name", "GET / HTTP/1.1\r\nHost: a\r\n: x\r\n\r\n", 400),
    ("LF alone", "GET / HTTP/1.1\nHost: a\n\n", 400), ("CR alone", "GET / HTTP/1.1\rHost: a\r\r", 400),
    ("NUL", "GET / HTTP/1.1\r\nHost: a\u{0}\r\n\r\n", 400),
    ("a control character", "GET / HTTP/1.1\r\nHost: a\r\nX: \u{1}\r\n\r\n", 400),
    ("HTTP/2's preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505), ("HTTP/2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    ("HTTP/1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505), ("HTTP/0.9", "GET /\r\n\r\n", 400),
    ("two spaces", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400), ("a tab", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("a target with a space", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("a fragment", "GET /#a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("half an escape", "GET /%4 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("an escaped NUL", "GET /%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("an escaped NUL in a query", "GET /?a=%00 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("an overlong slash", "GET /v1%c0%afcalls HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("an overlong dot", "GET /%e0%80%ae/v1 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("half a character", "GET /?user=%c3 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("a surrogate", "GET /%ed%a0%80 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("200 segments", "GET " + String(repeating: "/a", count: 200) + " HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("200 fields of a query", "GET /?" + String(repeating: "a=1&", count: 200) + " HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("a tunnel", "CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("a star that is not OPTIONS's", "GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    ("TLS", "\u{16}\u{3}\u{1}\u{2}", 400), ("only empty lines", "\r\n\r\n\r\n\r\n", 400),
    ("a long head", "GET / HTTP/1.1\r\nHost: a\r\nX: " + String(repeating: "x", count: 17_000), 431),
    ("many fields", "GET / HTTP/1.1\r\nHost: a\r\n" + String(repeating: "X: 1\r\n", count: 100) + "\r\n", 431),
  ])
  func `refused`(what: String, text: String, status: Int) {
    #expect(refusal(text) == status, "\(what)")
    // Octet by octet it is refused, too, though perhaps after fewer octets.
    let slow = steps(text.utf8.map { [$0] })
    #expect(slow.contains { if case .refused = $0 { true } else { false } }, "\(what), slowly")
  }

  @Test func `after a refusal nothing more is read`() {
    var reader = RequestReader(bodyBytes: 10)
    for text in ["GET / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nHost: a\r\n\r\n"] {
      Array(text.utf8).withUnsafeBytes { reader.append($0) }
      guard case .refused(let refusal) = reader.next() else {
        Issue.record("not refused")
        return
      }
      #expect(refusal.status == 400)
    }
  }

  @Test func `1.0 and close end the connection`() {
    for (text, keeps) in [
      ("GET / HTTP/1.0\r\n\r\n", false), ("GET / HTTP/1.1\r\nHost: a\r\nConnection: x, Close\r\n\r\n", false),
      ("\r\nGET / HTTP/1.1\r\nHost:\r\n\r\n", true),
    ] {
      guard case .request(let request)? = steps(text).first else {
        Issue.record("\(text)")
        continue
      }
      #expect(request.head.keepsAlive == keeps, "\(text)")
    }
  }

  /// Random changes of real requests never trap, and memory stays within the limits.
  @Test func `mutated requests are read or refused`() {
    let seed = Array(
      "POST /v1/calls HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nUpgrade: h2c\r\n\r\n5\r\nhello\r\n0\r\n\r\n".utf8)
    for number in 0..<2_000 {
      var random = SplitMix64(seed: UInt64(number))
      var octets = seed
      for _ in 0..<Int.random(in: 1...6, using: &random) {
        let index = Int.random(in: 0..<octets.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: octets[index] = UInt8.random(in: 0...255, using: &random)
        case 1: octets.remove(at: index)
        default: octets.insert(contentsOf: [13, 10, 0x20, 0x3a].shuffled(using: &random).prefix(2), at: index)
        }
      }
      let cut = Int.random(in: 0..<octets.count, using: &random)
      let whole = steps([octets])
      let split = steps([Array(octets[..<cut]), Array(octets[cut...])])
      // A refusal may come after fewer octets; the requests before it are the same.
      #expect(whole.filter { $0.name == "request" } == split.filter { $0.name == "request" }, "seed \(number)")
    }
  }
}

@Suite struct BodyPartTests {
  private func read(_ stream: String, by size: Int, limit: Int = 100) -> (parts: [UInt8], most: Int, last: RequestReader.Step) {
    var reader = RequestReader(bodyBytes: { _ in limit }, isReadInParts: { $0.method == "PUT" })
    var (parts, most, last): ([UInt8], Int, RequestReader.Step) = ([], 0, .needsMore)
    let octets = Array(stream.utf8)
    for start in stride(from: 0, to: octets.count, by: size) {
      octets[start..<min(start + size, octets.count)].withUnsafeBytes { reader.append($0) }
      reading: while true {
        let step = reader.next()
        switch step {
        case .needsMore: break reading
        case .part(let head, let octets):
          #expect(head.method == "PUT" && !octets.isEmpty)
          (parts, most) = (parts + octets, max(most, octets.count))
        default:
          last = step
          break reading
        }
      }
    }
    return (parts, most, last)
  }

  @Test(arguments: [1, 2, 7, 40, 1_000]) func `a body that is read in parts is whole, and its request follows without it`(
    size: Int
  ) throws {
    let text = String(repeating: "0123456789", count: 10)
    for stream in [
      "PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n" + text,
      "PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n\(text.prefix(64))\r\n24\r\n\(text.dropFirst(64))\r\n0\r\n\r\n",
    ] {
      let (parts, most, last) = read(stream, by: size)
      #expect(parts == Array(text.utf8) && most <= size)
      guard case .request(let request) = last else {
        Issue.record("\(last)")
        continue
      }
      #expect(request.body.isEmpty && request.head.method == "PUT")
    }
  }

  @Test func `its bound holds, a body of nothing has no part, and others' bodies are kept`() {
    let chunks =
      "PUT /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n40\r\n" + String(repeating: "a", count: 64) + "\r\n40\r\n"
    guard case .refused(let refusal) = read(chunks, by: 16).last else {
      Issue.record("taken beyond its bound")
      return
    }
    #expect(refusal.status == 413)
    #expect(read("PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n", by: 9).parts.isEmpty)
    guard case .request(let kept) = read("POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi", by: 5).last else {
      Issue.record("no request")
      return
    }
    #expect(kept.body == Array("hi".utf8))
  }
}

@Suite struct ResponseHeadTests {
  @Test func `no value begins a line`() {
    let octets = ResponseHead(200, [.init("x", "a\r\nSet-Cookie: b\u{0}")]).encoded
    #expect(String(decoding: octets, as: UTF8.self) == "HTTP/1.1 200 OK\r\nx: a  Set-Cookie: b \r\n\r\n")
  }
}

private struct Missing: Error {}
extension RequestReader.Step {
  fileprivate var name: String {
    switch self {
    case .needsMore: "needsMore"
    case .continueExpected: "continueExpected"
    case .part: "part"
    case .request: "request"
    case .refused: "refused"
    }
  }
}
