import Foundation
import Testing

/// The web phone in headless Chromium. Its microphone says what a test wants when it wants, and what the page hears of each call is kept.
struct SpeakingPage {
  let page: WebPage
  private let folder: String

  /// `heard`: a row for each call, in the order in which they were connected. Zeros are a microphone that is on in a silent room.
  private static let script = """
    (() => { const microphones = []; let studio = null; window.heard = [];
      const open = () => studio ??= new AudioContext({ sampleRate: 48000 });
      navigator.mediaDevices.getUserMedia = async () => {
        const microphone = open().createMediaStreamDestination(); microphone.channelCount = 1;
        const room = open().createConstantSource(); room.offset.value = 0; room.connect(microphone); room.start();
        microphones.push(microphone); return microphone.stream; };
      window.say = () => new Promise((done) => {
        const buffer = open().createBuffer(1, words.length, 8000), source = open().createBufferSource();
        buffer.copyToChannel(Float32Array.from(words, (x) => x / 32768), 0);
        source.buffer = buffer; source.onended = () => done(true);
        for (const microphone of microphones) source.connect(microphone);
        source.start(); });
      const keep = (call) => { const row = { id: call.id, samples: [] }; heard.push(row);
        recordStream(call.remoteStream, (samples) => row.samples.push(...samples)); };
      setInterval(() => { for (const call of window.trunkline?.calls ?? [])
        if (call.phase === "connected" && call.remoteStream && !heard.some((row) => row.id === call.id)) keep(call); }, 20);
      // a talker has spoken since the sample `from`, for 2 s in all, and says nothing since a second
      window.hasSpoken = (row, from) => { let loud = 0, quiet = 0;
        for (let at = from; at + 160 <= row.samples.length; at += 160) {
          const isLoud = row.samples.slice(at, at + 160).some((x) => Math.abs(x) > 300);
          loud += isLoud; quiet = isLoud ? 0 : quiet + 160; }
        return loud > 100 && quiet > 8000; };
    })()
    """

  /// `words`: at 8 kHz.
  init(_ gateway: GatewayUnderTest, user: String = "alice", says words: [Int16]) async throws {
    folder = gateway.folder
    page = try await WebPage(gateway)
    try await page.send("Page.setBypassCSP", ["enabled": true])
    try await page.hook("window.words = \(words);" + PageRecorder.script + Self.script)
    try await page.open(gateway, token: try await gateway.token(user, "web"))
  }

  /// Says its words, and waits until a second and a half more has been heard, so that they are there.
  func say() async throws {
    try await page.evaluate("say()")
    let count = try await page.evaluate("heard.at(-1).samples.length") as? Int ?? 0
    try await page.wait("heard.at(-1).samples.length > \(count + 12_000)")
  }

  /// Runs what makes the other side of a call speak, and waits until it has spoken.
  func listen(to call: Int, _ speak: () async throws -> Void) async throws {
    let count = try await page.evaluate("heard[\(call)].samples.length") as? Int ?? 0
    try await speak()
    try await page.wait("hasSpoken(heard[\(call)], \(count))", within: 20)
  }

  /// What was heard of a call, as a WAV file's path.
  func heard(_ call: Int) async throws -> String {
    let script =
      "btoa(Array.from(new Uint8Array(Int16Array.from(heard[\(call)].samples).buffer), (x) => String.fromCharCode(x)).join(''))"
    let bytes = [UInt8](try #require(Data(base64Encoded: try await page.evaluate(script) as? String ?? "-")))
    let path = folder + "/page-heard-\(call).wav"
    try Speech.write(
      stride(from: 0, to: bytes.count - 1, by: 2).map { Int16(bitPattern: UInt16(bytes[$0]) | UInt16(bytes[$0 + 1]) << 8) }, path)
    return path
  }
}

extension Peers {
  /// PESQ of every time that the passage of one file is in another, in order, and where.
  static func passages(_ said: String, in heard: String, _ gateway: GatewayUnderTest) async throws -> [(pesq: Double, at: Double)]
  {
    let scoring = try python("score", "passages_score.py", [said, heard], gateway)
    let score = try await scoring.event("score", within: 60)
    return zip(score["pesq"] as? [Double] ?? [], score["at"] as? [Double] ?? []).map { ($0, $1) }
  }
}
