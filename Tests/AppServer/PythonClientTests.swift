import AppSessions
import Foundation
import Testing
import TrunklineAppProtocol
import TrunklineBytes

/// The interpreter with the package `websockets`: TRUNKLINE_PYTHON, else the product's own environment.
let python: String? = {
  let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("../..").standardized
  let path = ProcessInfo.processInfo.environment["TRUNKLINE_PYTHON"] ?? root.appendingPathComponent(".venv/bin/python").path
  return FileManager.default.isExecutableFile(atPath: path) ? path : nil
}()

/// A client that others wrote: it offers compression, fragments, pings, and checks our closing handshake.
@Suite(.enabled(if: python != nil, "no Python with websockets: `Scripts/install test` makes it")) struct PythonClientTests {
  static let script = """
    import asyncio, json, sys, uuid, websockets
    async def main(url, token):
        async with websockets.connect(url, subprotocols=["trunkline.v1"], compression="deflate") as ws:
            print("subprotocol", ws.subprotocol)
            d = {"auth": token, "device": {"id": "d1"}, "caps": []}
            await ws.send(json.dumps({"t": "hello", "id": str(uuid.uuid4()), "d": d}))
            welcome = json.loads(await ws.recv())
            print(welcome["t"], welcome["d"]["resumed"], welcome["d"]["hb"])
            await ws.send(iter(['{"t":', '"pi', 'ng"}']))
            print(json.loads(await ws.recv())["t"])
            await (await ws.ping())
            print("pong frame")
            await ws.send(b"bytes")
            try:
                await ws.recv()
            except websockets.ConnectionClosed as closed:
                print("closed", closed.rcvd.code)
    asyncio.run(main(sys.argv[1], sys.argv[2]))
    """

  @Test func `the Python package websockets connects, talks and is closed cleanly`() throws {
    let fixture = try Fixture()
    let process = Process()
    process.executableURL = URL(fileURLWithPath: try #require(python))
    process.arguments = ["-c", Self.script, "ws://\(fixture.app.address)/v1/connect", Fixture.token()]
    let output = Pipe()
    process.standardOutput = output
    try process.run()
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    #expect(text == "subprotocol trunkline.v1\nwelcome False 15000\npong\npong frame\nclosed 1003\n")
  }
}
