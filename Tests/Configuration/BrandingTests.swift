import Foundation
import Testing

@testable import Configuration

@Suite struct BrandingTests {
  private let folder: TemporaryFolder
  private let start = "auth: { jwt: { key_file: jwt.key } }\nbranding: "

  init() throws {
    folder = try TemporaryFolder([
      "jwt.key": TemporaryFolder.key, "acme.svg": "<?xml version=\"1.0\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\"/>",
      "text.svg": "no picture", "big.svg": "<svg>" + String(repeating: " ", count: 70_000),
    ])
    let png: [UInt8] = [
      0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13, 0x49, 0x48, 0x44, 0x52, 0, 0, 1, 0, 0, 0, 0, 0xC0,
    ]
    try Data(png).write(to: URL(fileURLWithPath: folder.path + "/acme.bin"))
  }

  @Test func `name, colour and logo are taken; a logo is known by what is in it`() throws {
    let branding = try folder.parse(start + "{ name: Ačme & Söhne, color: \"#0A5c36\", logo: acme.svg }").branding
    #expect(branding.name == "Ačme & Söhne" && branding.color?.description == "#0a5c36" && branding.logo?.format == .svg)
    #expect(branding.logo?.sizes == "any")
    let png = try folder.parse(start + "{ logo: acme.bin, color: \"#fc0\" }").branding
    #expect(png.logo?.contentType == "image/png" && png.logo?.sizes == "256x192" && png.name == "Trunkline")
    #expect(png.color?.description == "#ffcc00")
  }

  @Test(arguments: [
    ("{ color: green }", "branding.color"), ("{ color: \"#12345\" }", "branding.color"),
    ("{ color: \"#gggggg\" }", "branding.color"),
    ("{ color: \"#0a5c36;} body{}\" }", "branding.color"), ("{ name: \" \" }", "branding.name"),
    ("{ name: \"a\\nb\" }", "branding.name"), ("{ name: \"a\\u202eb\" }", "branding.name"),
    ("{ name: \(String(repeating: "x", count: 41)) }", "branding.name"), ("{ logo: text.svg }", "neither SVG nor PNG"),
    ("{ logo: big.svg }", "more than the limit"), ("{ logo: none.svg }", "cannot read"),
    ("{ colour: \"#fff\" }", "did you mean color?"),
  ])
  func `what is no name, colour or logo is refused`(yaml: String, said: String) {
    let problems = folder.problems(start + yaml)
    #expect(problems.contains { $0.contains(said) }, "\(problems)")
  }

  /// Every colour of a grid through the whole cube, so that none is left on which the text cannot be read.
  @Test func `what is written on a colour has a contrast of 4.5 to 1 at least`() throws {
    for red in stride(from: 0, through: 255, by: 15) {
      for green in stride(from: 0, through: 255, by: 15) {
        for blue in stride(from: 0, through: 255, by: 15) {
          let text = "#" + [red, green, blue].map { String(format: "%02x", $0) }.joined()
          let color = try #require(RGBColor(text))
          #expect(color.contrast(to: color.textColor) >= 4.5, "\(text)")
        }
      }
    }
    #expect(RGBColor("#000")?.contrast(to: RGBColor("#fff")!) == 21)
  }
}
