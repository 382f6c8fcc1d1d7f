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
    /// `'""'`: literals side by side in a shell.
    Glued,
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
    /// `strrev(`, `.replace("`: a literal in a call.
    Called,
    /// ` dash `: a sign as a word.
    SignWord,
    /// `(dot)`: a sign in brackets.
    Defanged,
    /// `: >-` at the end of a line: a text folded over the next.
    Folded,
    /// What a token begins with that may go on somewhere else.
    Head,
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
            "concatenate(",
            "textjoin(",
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
            "join('', '",
            "}{1}",
            ".join((\"",
            ".join(('",
            ") -join ",
            "join(\"\", [",
            "join('', [",
        ],
    ),
    (Mark::Lines, &["= (\n", "= (\r\n"]),
    (
        Mark::Operator,
        &[
            "\" ^ \"", "' ^ '", "\" ~ \"", "' ~ '", "\" <> \"", "\" ++ \"", "' ++ '", "' // '",
            "\" << \"", "' << '",
        ],
    ),
    (Mark::Glued, &["'\"\"'", "\"''\""]),
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
        &[
            "part two",
            "second half",
            "second part",
            "second piece",
            "suffix",
        ],
    ),
    // Digits of Morse code, of which a number has some, and letters, of which a sentence has some.
    (
        Mark::Morse,
        &[
            ".---- ", "..--- ", "...-- ", "....- ", "---.. ", "----. ", "-.... ", "--... ",
            " .-. ", " -.. ", " --. ", " -.-. ", " .-.. ", " ..- ", " .--. ",
        ],
    ),
    (
        Mark::Spoken,
        &[
            // Three digits of each language and more: a number of nine has one of three, but for one in twenty-five.
            "three",
            "seven",
            "eight",
            "drei ",
            "sieben",
            " acht ",
            "fünf ",
            " neun ",
            "quatre",
            " sept ",
            " huit ",
            " huit,",
            " sept,",
            " neuf,",
            " neuf ",
            " zéro ",
            "cinco",
            "siete",
            "ocho ",
            "cuatro",
            "nueve",
            " cero ",
            "quattro",
            "sette ",
            " otto ",
            "cinque",
            " nove ",
            "quatro",
            " sete ",
            " oito ",
            "zeven",
            "vijf ",
            "negen",
            "zes-",
            " zes ",
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
            "叁零", "叁壹", "叁贰", "叁叁", "叁肆", "叁伍", "叁陆", "叁柒", "叁捌", "叁玖", "柒零",
            "柒壹", "柒贰", "柒叁", "柒肆", "柒伍", "柒陆", "柒柒", "柒捌", "柒玖", "捌零", "捌壹",
            "捌贰", "捌叁", "捌肆", "捌伍", "捌陆", "捌柒", "捌捌", "捌玖", "三 ", "七 ", "八 ",
            "삼영", "삼공", "삼일", "삼이", "삼삼", "삼사", "삼오", "삼육", "삼칠", "삼팔", "삼구",
            "칠영", "칠공", "칠일", "칠이", "칠삼", "칠사", "칠오", "칠육", "칠칠", "칠팔", "칠구",
            "팔영", "팔공", "팔일", "팔이", "팔삼", "팔사", "팔오", "팔육", "팔칠", "팔팔", "팔구",
            "칠 ", "팔 ", "⠼⠚", "⠼⠁", "⠼⠃", "⠼⠉", "⠼⠙", "⠼⠑", "⠼⠋", "⠼⠛", "⠼⠓", "⠼⠊",
        ],
    ),
    (
        Mark::Backwards,
        &[
            "reversed",
            "backwards",
            "[::-1]",
            "| rev",
            "rev <<<",
            "backward)",
            "drawkcab",
            "omgekeerd",
            "achterstevoren",
            "baklänges",
            "baklengs",
            "bagvendt",
            "wspak",
            "pozpátku",
            "tersten",
            "наоборот",
            "задом наперёд",
            "all'inverso",
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
    (
        Mark::Called,
        &[
            ".reverse",
            "strrev(",
            "reverse(\"",
            "reverse('",
            "replace(\"",
            "replace('",
            "replaceall(\"",
            "replaceall('",
            "gsub(\"",
            "gsub('",
            "fromhex(",
            "unhex(",
            "pack(\"h*",
            "pack('h*",
            "hex2bin(",
            "decodehex(",
            "xxd -r",
        ],
    ),
    (
        Mark::SignWord,
        &[" dash ", " underscore ", " hyphen ", " minus ", " colon "],
    ),
    (
        Mark::Defanged,
        &["(dot)", "[dot]", "{dot}", "(underscore)", "[underscore]"],
    ),
    (
        Mark::Folded,
        &[
            ": >-\n", ": >\n", ": |-\n", ": |\n", "= >-\n", ". >-\n", ": >-\r\n", ": >\r\n",
            ": |-\r\n", ": |\r\n",
        ],
    ),
    (
        Mark::Head,
        &[
            "ghp_",
            "gho_",
            "ghu_",
            "ghs_",
            "github_pat_",
            "glpat",
            "xoxb-",
            "xoxp-",
            "xapp-",
            "sk_live",
            "rk_live",
            "whsec_",
            "sk-ant",
            "sk-proj",
            "akia",
            "asia",
            "aiza",
            "npm_",
            "pypi-",
            "dop_v1_",
            "shpat_",
            "hvs.",
            "figd_",
            "ntn_",
            "tskey-",
            "gsk_",
            "pplx-",
            "dckr_pat_",
            "nrak-",
            "pmak-",
            "glrt-",
            "sk-or-",
            "eyjh",
            " hf_",
            "\"hf_",
            "'hf_",
            "=hf_",
            ":hf_",
            "\nhf_",
            "/hf_",
            "_hf_",
            ">hf_",
            "(hf_",
            "|hf_",
        ],
    ),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Budget, FingerprintKey, LeafInput, LeafKind, RuleSet, Scanner};

    /// Words that decoders begin at, numbers and codes, in any order: each ends, none goes round in circles, and what they
    /// find lies in the text.
    #[test]
    fn words_for_decoding_in_any_order() {
        const NUMBERS: [&str; 7] = [
            "889338117",
            "4539 5787 6362 1486",
            "711 833 988",
            "DE89 3704 0044 0532 0130 00",
            "a.lindqvist@nordwind.example",
            "6841 2636 7875 9354",
            "七〇八三八",
        ];
        // Beside words for decoding each is one layer more, and six are not many then.
        const CODES: [&str; 5] = [
            "NDUzOSA1Nzg3IDYzNjIgMTQ4Ng==",
            "34353339353738373633363231343836",
            ".-.. --- .-.. -....",
            "%34%35%33%39",
            "\\u0034\\u0035",
        ];
        const SIGNS: [&str; 16] = [
            " ", " ", " ", ", ", ": ", " = ", " (", ")", "\n", "\"", "(\"", "\")", ";", " + ", "/",
            "é",
        ];
        let words: Vec<&str> = WORDS
            .iter()
            .flat_map(|(_, words)| *words)
            .copied()
            .collect();
        let mut x = 0x9E37_79B9_7F4A_7C15_u64;
        let mut below = |n: usize| {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            (x >> 32) as usize % n
        };
        let mut scanner = Scanner::new(FingerprintKey::new([7; 32]));
        for round in 0..30_000 {
            let coded = round % 2 == 0;
            let mut text = String::new();
            if coded {
                text += CODES[below(CODES.len())];
            }
            for _ in 0..2 + below(6) {
                match below(3) {
                    0 => text += words[below(words.len())],
                    1 => text += NUMBERS[below(NUMBERS.len())],
                    _ => text += SIGNS[below(SIGNS.len())],
                }
                text += SIGNS[below(SIGNS.len())];
            }
            let leaf = LeafInput {
                text: &text,
                kind: LeafKind::String,
                name: None,
            };
            let outcome = scanner.scan(RuleSet::builtin(), [leaf].into_iter(), &Budget::default());
            if !coded {
                assert_eq!(outcome.over_budget, None, "{text}");
            }
            for finding in &outcome.findings {
                let place = finding.start as usize..finding.end as usize;
                assert!(text.get(place.clone()).is_some(), "{place:?} of {text}");
            }
        }
    }
}
