import HTTP
import Testing

@Suite struct CacheLifetimeTests {
  @Test(
    arguments: [
      ("max-age=300", nil, 300), ("public, max-age=19845, must-revalidate, no-transform", nil, 19_845),
      ("MAX-AGE = \"60\"", nil, 60),
      ("max-age=300", "100", 200), ("max-age=300", "900", 0), ("max-age=300", "soon", 300), ("no-cache, max-age=300", nil, 0),
      ("no-store", nil, 0), ("max-age=600, max-age=60", nil, 60), ("max-age=99999999999999999999", nil, 1 << 31),
    ] as [(String, String?, Int)])
  func `an answer is fresh for max-age less Age, and not at all by no-store and no-cache`(
    control: String, age: String?, seconds: Int
  ) {
    #expect(CacheLifetime.seconds(cacheControl: control, age: age) == seconds)
  }

  @Test(arguments: [nil, "", ",", "=", "max-age", "max-age=", "max-age=-1", "max-age=1.5", "private", "s-maxage=5"] as [String?])
  func `what is not understood says nothing`(control: String?) {
    #expect(CacheLifetime.seconds(cacheControl: control) == nil)
  }
}
