//! Words that some ways to write a text in pieces, in words or in a cipher cannot do without. The gate looks for them
//! together with the keywords of the rules, so that a text without them costs nothing.

/// Which decoder a word belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// `.append("`
    Append,
    /// `+= "`
    More,
    /// `] = "`
    Index,
    /// `concat(`, `].join(`, `"%s%s"`: literals parted by commas.
    List,
    /// `= (` at the end of a line: literals under each other.
    Lines,
    /// `" ^ "`
    Operator,
    /// `#define`: literals side by side.
    Define,
    /// `part 2`, `[2/3`
    Part,
    /// `| 2 | `, `"2": "`: the number of a character and the character.
    Numbered,
    /// `second half`, `suffix`
    Half,
    /// `...--`
    Morse,
    /// A digit or a letter as a word.
    Spoken,
    /// A number in the figures of a script that has digits of its own, or in Braille.
    Figures,
    /// A word that says a value is written backwards.
    Backwards,
    /// The name of a cipher, or the alphabet it is given by.
    Cipher,
    /// The name of base85.
    Base85,
    /// The name of base64, beside a text too short to show it.
    Base64,
    /// `{\rtf`
    Rtf,
}

/// In lower case; each of at least four bytes.
pub(crate) const WORDS: &[(Mark, &[&str])] = &[
    (
        Mark::Append,
        &[
            ".append(\"",
            ".append('",
            ".push_str(\"",
            ".appendstring(\"",
            ".push(\"",
            ".push('",
        ],
    ),
    (Mark::More, &["+= \"", "+= '", ".= \"", ".= '"]),
    (Mark::Index, &["] = \"", "] = '"]),
    (
        Mark::List,
        &[
            "concat(",
            "concat!(",
            "].join(",
            ".join([",
            "paste0(",
            "%s%s",
            "{}{}",
            "(str \"",
            "implode(",
            "].concat(",
            ".join(\"\", ",
        ],
    ),
    (Mark::Lines, &["= (\n", "= (\r\n"]),
    (
        Mark::Operator,
        &[
            "\" ^ \"", "' ^ '", "\" <> \"", "\" ++ \"", "' ++ '", "' // '", "\" << \"", "' << '",
        ],
    ),
    (Mark::Define, &["#define "]),
    (
        Mark::Part,
        &[
            "part 2", "piece 2", "chunk 2", "[2/1", "[2/2", "[2/3", "[2/4", "[2/5", "[2/6", "[2/7",
            "[2/8", "[2/9", "(2/1", "(2/2", "(2/3", "(2/4", "(2/5", "(2/6", "(2/7", "(2/8", "(2/9",
        ],
    ),
    (Mark::Numbered, &["\n| 2 | ", "\"2\": \""]),
    (
        Mark::Half,
        &["second half", "second part", "second piece", "suffix"],
    ),
    // Digits of Morse code: a number has some of them.
    (
        Mark::Morse,
        &[
            ".---- ", "..--- ", "...-- ", "....- ", "---.. ", "----. ", "-.... ", "--... ",
        ],
    ),
    (
        Mark::Spoken,
        &[
            // Three digits of each language: a number of nine has one of them, but for one in twenty-five.
            "three",
            "seven",
            "eight",
            "drei ",
            "sieben",
            " acht ",
            "quatre",
            " sept ",
            " huit ",
            "cinco",
            "siete",
            "ocho ",
            "quattro",
            "sette ",
            " otto ",
            "quatro",
            " sete ",
            " oito ",
            "zeven",
            "vijf ",
            "siedem",
            "osiem",
            "cztery",
            "семь",
            "восемь",
            "четыре",
            "вісім",
            "чотири",
            "sedm ",
            "čtyři",
            "yedi ",
            "sekiz",
            "dört ",
            "åtta",
            "fyra ",
            "tujuh",
            "delapan",
            "empat ",
            "şapte",
            "patru ",
            "seitsemän",
            "kahdeksan",
            "yhdeksän",
            " három",
            "nyolc",
            "kilenc",
            "επτά",
            "οκτώ",
            "τέσσερα",
            "שלוש",
            "שמונה",
            "שבע",
            "ثلاثة",
            "سبعة",
            "ثمانية",
            "เจ็ด",
            "แปด",
            "สาม",
            "bảy ",
            "tám ",
            "bốn ",
            " syv ",
            "otte ",
            "åtte ",
            "seks ",
            "sedam",
            "sedem",
            "четири",
            "седем",
            "هفت",
            "هشت",
            "چهار",
            "सात ",
            "आठ ",
            "तीन ",
            "șapte",
            "сім ",
            "osam ",
            "foxtrot",
            "juliet",
            "whiskey",
            "quebec ",
            "tango ",
            "sierra ",
            "bravo ",
            "yankee ",
            "november ",
            "uniform ",
            "oscar ",
            "romeo ",
        ],
    ),
    (
        Mark::Figures,
        &[
            // Three figures of ten with each other one: a number of nine has a pair of them, but for one in twenty.
            "三〇", "三零", "三一", "三二", "三三", "三四", "三五", "三六", "三七", "三八", "三九",
            "七〇", "七零", "七一", "七二", "七三", "七四", "七五", "七六", "七七", "七八", "七九",
            "八〇", "八零", "八一", "八二", "八三", "八四", "八五", "八六", "八七", "八八", "八九",
            "三 ", "七 ", "八 ", "삼영", "삼공", "삼일", "삼이", "삼삼", "삼사", "삼오", "삼육",
            "삼칠", "삼팔", "삼구", "칠영", "칠공", "칠일", "칠이", "칠삼", "칠사", "칠오", "칠육",
            "칠칠", "칠팔", "칠구", "팔영", "팔공", "팔일", "팔이", "팔삼", "팔사", "팔오", "팔육",
            "팔칠", "팔팔", "팔구", "칠 ", "팔 ", "⠼⠚", "⠼⠁", "⠼⠃", "⠼⠉", "⠼⠙", "⠼⠑", "⠼⠋", "⠼⠛",
            "⠼⠓", "⠼⠊",
        ],
    ),
    (
        Mark::Backwards,
        &[
            "reversed",
            "backwards",
            "backward)",
            "rückwärts",
            "à l'envers",
            "al revés",
            "ao contrário",
            "al contrario",
        ],
    ),
    (
        Mark::Cipher,
        &[
            "rot13",
            "rot-13",
            "rot47",
            "atbash",
            "caesar",
            "shifted by",
            "n-za-m",
        ],
    ),
    (Mark::Base64, &["base64", "atob(", "b64dec", "(b64)"]),
    (Mark::Base85, &["base85", "ascii85", "base-85"]),
    (Mark::Rtf, &["{\\rtf"]),
];

/// What the gate would find, for the decoders' tests.
#[cfg(test)]
pub(crate) fn in_text(text: &[u8]) -> Vec<(u32, Mark)> {
    let lower = text.to_ascii_lowercase();
    let mut found: Vec<_> = WORDS
        .iter()
        .flat_map(|(mark, words)| words.iter().map(move |word| (*mark, *word)))
        .flat_map(|(mark, word)| {
            let hits = memchr::memmem::find_iter(&lower, word).collect::<Vec<_>>();
            hits.into_iter()
                .map(move |at| (crate::text::to_u32(at), mark))
        })
        .collect();
    found.sort_by_key(|(at, _)| *at);
    found
}
