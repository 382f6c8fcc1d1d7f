//! Names of people: words as names are written, and given names. A name alone says little; rules ask for one behind the word
//! for the part that somebody plays (a patient, somebody accused, a customer).

use std::collections::HashSet;
use std::sync::LazyLock;

use smallvec::SmallVec;

use super::Table;

pub(super) const CHECKS: Table = &[
    ("person-name", person_name),
    ("given-name", given_name),
    ("locator", locator),
    ("name-in-a-field", name_in_a_field),
    ("given-in-a-field", given_in_a_field),
    ("unlisted-name", unlisted_name),
    ("unlisted-name-of-no-firm", unlisted_name_of_no_firm),
    ("family-name", family_name),
    ("cjk-name", cjk_name),
    ("told-address", told_address),
    ("one-case", one_case),
];

/// Given names of some 90 countries, out of the lists of Faker 40 and faker-js 10 (MIT License), with and without their accents, in the
/// order of their bytes; names that are words, places or products are left out (`scripts/given-names.py`).
const GIVEN: &str = include_str!("given.txt");

fn is_given(word: &str) -> bool {
    // In Vietnam the second of three is one of few.
    matches!(word, "thị" | "văn") || crate::text::has_word(GIVEN, word)
}

/// Fewest and most words of a name, and longest word.
const WORDS: std::ops::RangeInclusive<usize> = 2..=5;
const LETTERS_MAX: usize = 22;

/// Small words in names.
const PARTICLES: [&str; 24] = [
    "de", "la", "del", "da", "do", "dos", "das", "van", "der", "den", "von", "zu", "di", "bin",
    "al", "el", "y", "e", "ten", "ter", "le", "du", "af", "av",
];

/// Words with a capital that stand behind the word for a part and are nobody's name: `Customer Success Manager`,
/// `Patient Safety`, `Employee Handbook`; parts and what they have in other languages, and firms that are customers of everybody. In order.
const NO_NAMES: &str = include_str!("no-names.txt");

/// Is it one of them?
fn is_no_name(word: &str) -> bool {
    crate::text::has_word(NO_NAMES, word)
}

/// Endings of what is no name.
const ENDINGS: [&str; 14] = [
    "tion", "tions", "ness", "ship", "keit", "heit", "schaft", "ware", "ción", "ção", "zione",
    "ität", "ité", "idad",
];

/// Names that stand for anybody, in manuals.
const ANYBODY: [&str; 14] = [
    "john smith",
    "jane smith",
    "john doe",
    "jane doe",
    "john roe",
    "jane roe",
    "max mustermann",
    "erika mustermann",
    "joe bloggs",
    "john public",
    "juan pérez",
    "juan perez",
    "jan kowalski",
    "иван иванов",
];

/// Two words and more as names are written, none of which is a word of firms and programs.
fn person_name(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let lower = text.to_lowercase();
    let mut named = 0;
    for (word, low) in text.split(' ').zip(lower.split(' ')) {
        if named > 0 && word == low && PARTICLES.contains(&low) {
            continue;
        }
        let initial = named > 0 && word.len() == 2 && word.ends_with('.');
        if initial && word.starts_with(|c: char| c.is_ascii_uppercase()) {
            continue;
        }
        if !is_named(word) || is_no_name(low) || ENDINGS.iter().any(|end| low.ends_with(end)) {
            return false;
        }
        named += 1;
    }
    WORDS.contains(&named) && !ANYBODY.contains(&lower.as_str())
}

/// A name of which the first word, or the last where the family's stands before it, is given to many.
fn given_name(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let lower = text.to_lowercase();
    let mut words = lower.split(' ');
    let given = |word: &str| is_given(word) || word.split('-').next().is_some_and(is_given);
    person_name(value) && words.any(given)
}

/// The name that comes last among words with one blank between them: a word given to many, what stands behind it as names do, or
/// before it as families do where nothing stands behind. In bytes of `run`.
pub(crate) fn name_within(run: &str) -> Option<std::ops::Range<usize>> {
    /// What stands beside a name with a capital, and is none.
    const BESIDE_NAMES: [&str; 31] = [
        "santa",
        "san",
        "saint",
        "yours",
        "dear",
        "hello",
        "hi",
        "hey",
        "call",
        "meet",
        "ask",
        "tell",
        "thanks",
        "regards",
        "sincerely",
        "now",
        "today",
        "tomorrow",
        "yesterday",
        "please",
        "the",
        "and",
        "from",
        "with",
        "for",
        "by",
        "is",
        "was",
        "has",
        "your",
        "our",
    ];
    /// Names of a family behind the one that was given.
    const BEHIND_MAX: usize = 3;
    /// Families that stand first, of a country where few have another.
    const FIRST: [&str; 16] = [
        "nguyễn", "trần", "lê", "phạm", "hoàng", "huỳnh", "phan", "vũ", "võ", "đặng", "bùi", "đỗ",
        "hồ", "ngô", "dương", "lý",
    ];
    /// Families of another one, behind two syllables with a hyphen.
    const KOREAN: [&str; 32] = [
        "kim", "lee", "park", "choi", "jung", "jeong", "kang", "cho", "yoon", "jang", "lim", "han",
        "oh", "seo", "shin", "kwon", "hwang", "ahn", "song", "yoo", "hong", "jeon", "moon", "yang",
        "bae", "baek", "heo", "nam", "noh", "kwak", "cha", "ryu",
    ];
    let mut at = 0;
    let words: SmallVec<[(usize, &str); 16]> = run
        .split(' ')
        .map(|word| {
            let start = at;
            at += word.len() + 1;
            (start, word)
        })
        .collect();
    let bare = |nth: usize| match words[nth].1 {
        word if word.chars().count() > 2 => {
            let word = word.trim_end_matches('.');
            word.strip_suffix("'s")
                .or(word.strip_suffix("’s"))
                .unwrap_or(word)
        }
        word => word,
    };
    let low = |nth: usize| bare(nth).to_lowercase();
    let is_some_name =
        |low: &str| !is_no_name(low) && !LABELS.contains(&low) && !BESIDE_NAMES.contains(&low);
    let named = |nth: usize| {
        let initial = bare(nth).ends_with('.');
        initial || is_named(bare(nth)) && is_some_name(&low(nth))
    };
    // `Dong-hyun Park`
    let korean = |nth: usize| {
        let next = words.get(nth + 1).map(|_| low(nth + 1));
        next.is_some_and(|family| KOREAN.contains(&family.as_str()))
    };
    let given = |nth: usize| {
        // Most words begin small.
        is_named(bare(nth)) && {
            let low = low(nth);
            let half = |(half, _)| is_given(half) || korean(nth);
            (is_given(&low) || low.split_once('-').is_some_and(half)) && is_some_name(&low)
        }
    };
    // A sentence ends there.
    let ends = |nth: usize| bare(nth).len() < words[nth].1.len();
    (0..words.len())
        .rev()
        .filter(|nth| given(*nth))
        .find_map(|nth| {
            let (mut start, mut end) = (nth, nth + 1);
            while end - nth <= BEHIND_MAX && !ends(end - 1) {
                let next = (end..words.len()).find(|n| !PARTICLES.contains(&words[*n].1));
                match next.filter(|next| named(*next)) {
                    Some(next) => end = next + 1,
                    None => break,
                }
            }
            let goes_before = |at: usize| given(at) || FIRST.contains(&low(at).as_str());
            while start > 0 && !ends(start - 1) && goes_before(start - 1) {
                start -= 1;
            }
            if end - start < 2 && start > 0 && !ends(start - 1) && named(start - 1) {
                start -= 1;
            }
            let span = words[start].0..words[end - 1].0 + bare(end - 1).len();
            name_in_a_field(run[span.clone()].as_bytes()).then_some(span)
        })
}

/// Words for names: a catalogue of messages has the label of a field where a form has somebody.
const LABELS: [&str; 49] = [
    "sobrenome",
    "efternamn",
    "achternaam",
    "familienname",
    "sukunimi",
    "soyadı",
    "soyad",
    "příjmení",
    "priezvisko",
    "etternavn",
    "efternavn",
    "vezetéknév",
    "apellido",
    "フル",
    "ネーム",
    "שם",
    "מלא",
    "الاسم",
    "الكامل",
    "اسم",
    "نام",
    "کامل",
    "नाम",
    "पूरा",
    "ชื่อ",
    "имя",
    "фамилия",
    "отчество",
    "име",
    "прізвище",
    "όνομα",
    "επώνυμο",
    "nombre",
    "nome",
    "nom",
    "naam",
    "navn",
    "namn",
    "nimi",
    "imię",
    "nazwisko",
    "jméno",
    "név",
    "vorname",
    "nachname",
    "apellidos",
    "cognome",
    "tên",
    "họ",
];

/// A name under a label that says so: in any order, with initials, or in capitals as tickets have it (`HOLLOWAY, MARGARET J`).
fn name_in_a_field(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let lower = text.to_lowercase();
    let parts = |text| str::split(text, [' ', ',', '^', '/']).filter(|word| !word.is_empty());
    let mut named = 0;
    for (word, low) in parts(text).zip(parts(&lower)) {
        let initial = word.trim_end_matches('.').chars().count() == 1;
        if named > 0 && (initial || PARTICLES.contains(&low))
            || PARTICLES.contains(&low) && word == low
        {
            continue;
        }
        let capitals = word.len() > 1 && word.bytes().all(|b| b.is_ascii_uppercase() || b == b'-');
        let spelt = is_named(word) || capitals;
        if !spelt
            || LABELS.contains(&low)
            || is_no_name(low)
            || ENDINGS.iter().any(|end| low.ends_with(end))
        {
            return false;
        }
        named += 1;
    }
    WORDS.contains(&named) && !ANYBODY.contains(&lower.as_str())
}

/// The same where things have such a field as well (`full_name`): one of the words is a name that is given to many, or no letter
/// of it is Latin.
fn given_in_a_field(value: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let lower = text.to_lowercase();
    let mut words = lower.split([' ', ',', '-']);
    let cyrillic = text.chars().any(|c| ('\u{400}'..='\u{52F}').contains(&c));
    let foreign = match cyrillic {
        // Many a thing is called by two words; nothing but a person has a father's name.
        true => lower
            .split(' ')
            .any(|word| FATHERS.iter().any(|end| word.ends_with(end))),
        false => text.chars().all(|c| !c.is_alphabetic() || c > '\u{36F}'),
    };
    name_in_a_field(value) && (foreign || words.any(is_given))
}

/// Words that stand for a name in examples, and labels of fields, in languages whose words no list of English has.
const FILLERS: &[&str] = &[
    "vertrieb",
    "innendienst",
    "außendienst",
    "buchhaltung",
    "zentrale",
    "einkauf",
    "soporte",
    "ventas",
    "compras",
    "équipe",
    "equipe",
    "commerciale",
    "commercial",
    "técnico",
    "lorem",
    "ipsum",
    "dolor",
    "foo",
    "bar",
    "baz",
    "qux",
    "asdf",
    "xyz",
    "abc",
    "todo",
    "tbd",
    "kunden",
    "gast",
    "benutzer",
    "empfänger",
    "empfaenger",
    "absender",
    "inhaber",
    "konto",
    "adresse",
    "mieter",
    "schüler",
    "mitarbeiter",
    "angaben",
    "titular",
    "datos",
    "personales",
    "destinatario",
    "beneficiario",
    "beneficiary",
    "pasajero",
    "huésped",
    "alumno",
    "usuario",
    "completo",
    "completa",
    "utilisateur",
    "destinataire",
    "bénéficiaire",
    "titulaire",
    "passager",
    "invité",
    "élève",
    "locataire",
    "adres",
    "gebruiker",
    "ontvanger",
    "huurder",
    "ospite",
    "utente",
    "destinatário",
    "hóspede",
    "aluno",
    "användare",
    "mottagare",
    "bruger",
    "bruker",
    "modtager",
    "mottaker",
    "użytkownik",
    "odbiorca",
    "uczeń",
    "klient",
    "uživatel",
    "příjemce",
    "kullanıcı",
    "alıcı",
    "müşteri",
    "stiftung",
    "filiale",
    "fondazione",
    "fondation",
    "fundación",
    "enterprises",
    "technologies",
    "industries",
    "motors",
    "pharma",
    "pharmaceuticals",
    "logistics",
    "logistik",
    "versicherung",
    "versicherungen",
    "distribuidora",
    "seguros",
    "assicurazioni",
    "assurances",
    "banca",
    "verzekeringen",
    "forsikring",
    "handels",
    "brands",
    "admin",
    "checkout",
    "sandbox",
    "dashboard",
    "webhook",
    "database",
    "workspace",
    "backend",
    "frontend",
    "firewall",
    "ingress",
    "egress",
    "passport",
    "kubernetes",
    "nginx",
    "docker",
    "grafana",
    "debian",
    "ubuntu",
    "zalando",
    "lufthansa",
    "allianz",
    "klarna",
    "zendesk",
    "okta",
    "adyen",
    "laravel",
    "postgres",
    "ime",
    "prezime",
    "pengguna",
    "penerima",
    "pelanggan",
    "nama",
    "имя",
    "клиент",
    "получатель",
    "пользователь",
    "пациент",
    "гость",
];

/// First words of names of towns and lands.
const PLACES: &[&str] = &[
    "los",
    "las",
    "san",
    "santa",
    "santo",
    "são",
    "sao",
    "buenos",
    "rio",
    "saint",
    "sankt",
    "bad",
    "abu",
    "tel",
    "kuala",
    "ho",
    "addis",
    "burkina",
    "sri",
    "costa",
    "puerto",
    "sierra",
    "cabo",
    "nordrhein",
    "baden",
    "schleswig",
    "sachsen",
    "mecklenburg",
    "rheinland",
    "uttar",
    "andhra",
    "tamil",
    "himachal",
    "madhya",
    "arunachal",
    "nova",
    "novo",
    "nizhny",
    "nizhniy",
    "sankt-peterburg",
    "île",
    "ile",
];

/// How names of families end that are words as well.
const FAMILIES: &[&str] = &[
    "son", "sen", "ez", "ov", "ova", "ski", "ska", "sky", "wicz", "berg", "stein", "mann", "worth",
    "shaw", "oway", "ford", "quist", "gren", "ström", "vić", "ić", "escu", "oğlu", "ian", "yan",
    "enko", "shvili", "opoulos", "ley", "ston", "brook", "cott",
];

/// Firms of everybody whose names are two words that no list has.
const TWO_WORDS: &[&str] = &[
    "goldman sachs",
    "hewlett packard",
    "albert heijn",
    "merrill lynch",
    "louis vuitton",
    "deutsche telekom",
    "ernst young",
    "rolls royce",
    "tata consultancy",
    "tata motors",
    "larsen toubro",
    "mercedes benz",
    "hapag lloyd",
    "crédit agricole",
    "société générale",
    "banco santander",
    "banco bradesco",
    "intesa sanpaolo",
    "bharti airtel",
    "mahindra mahindra",
    "aditya birla",
    "bausch lomb",
    "harley davidson",
    "kuehne nagel",
    "jpmorgan chase",
    "thermo fisher",
    "bristol myers",
    "hindustan unilever",
    "samsung electronics",
    "visual studio",
];

/// The words of a name, without initials and the small words in it; of one that is written with the family's name first, too.
fn main_words(lower: &str) -> impl Iterator<Item = &str> + Clone {
    let words = lower.split([' ', ',', '^', '/']);
    words.filter(|word| word.trim_end_matches('.').chars().count() > 1 && !PARTICLES.contains(word))
}

fn is_word_of_a_list(word: &str) -> bool {
    // What firms and libraries call themselves.
    const ENDINGS: [&str; 14] = [
        "js",
        "db",
        "sql",
        "soft",
        "tech",
        "hub",
        "cloud",
        "corp",
        "bank",
        "banken",
        "sparkasse",
        "banka",
        "bot",
        "api",
    ];
    crate::detect::is_english(word) || ENDINGS.iter().any(|end| word.ends_with(end))
}

/// Is it an example, a label, a firm or a place?
fn is_of_a_thing(lower: &str) -> bool {
    static FILLING: LazyLock<HashSet<&str>> = LazyLock::new(|| FILLERS.iter().copied().collect());
    let first = main_words(lower).next().unwrap_or_default();
    PLACES.contains(&first)
        || main_words(lower).any(|word| FILLING.contains(word))
        || TWO_WORDS.contains(&lower)
}

/// A name of two words and more as names are written, one of which is given to many, or of which the first is in no list of words or of
/// places, under a name that only persons have: `Thandeka Holloway`.
fn unlisted_name(value: &[u8]) -> bool {
    is_unlisted(value, |_| true)
}

/// Such a name, where `others` holds of its other words or one of them is given to many.
fn is_unlisted(value: &[u8], others: impl Fn(&str) -> bool) -> bool {
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let lower = text.to_lowercase();
    let unlisted = || {
        let mut words = main_words(&lower);
        let first = words.next().unwrap_or_default();
        (1..=3).contains(&words.clone().count())
            && !is_word_of_a_list(first)
            && words.all(&others)
            && name_in_a_field(value)
    };
    !is_of_a_thing(&lower) && (given_in_a_field(value) || unlisted())
}

/// The same where firms stand as well: no other word is in the list, but one that families are called by.
fn unlisted_name_of_no_firm(value: &[u8]) -> bool {
    is_unlisted(value, |word| {
        let ends = |end: &&str| word.len() > end.len() + 2 && word.ends_with(*end);
        !is_word_of_a_list(word) || FAMILIES.iter().any(ends)
    })
}

/// How a father's name ends in the languages that have one.
const FATHERS: [&str; 8] = ["вич", "вна", "ична", "ьич", "івна", "ївна", "оглы", "кызы"];

/// Chinese, Japanese or Korean, with the family's name first: as long as names are, and of no signs that words on forms have.
fn cjk_name(value: &[u8]) -> bool {
    const TITLES: [&str; 6] = ["先生", "女士", "小姐", "医生", "教授", "老师"];
    const OF_WORDS: &str = "上下级意法式色额数间件填版值必选无者级务任称号类型输请入漢字須記例";
    const WORDS: [&str; 8] = [
        "이메일",
        "이미지",
        "한국어",
        "고객명",
        "이용자",
        "신청자",
        "주문자",
        "주소지",
    ];
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let name = TITLES.iter().find_map(|title| text.strip_suffix(title));
    let name = name.unwrap_or(text);
    let count = name.chars().filter(|c| !c.is_whitespace()).count();
    let korean = name.chars().all(|c| ('\u{AC00}'..='\u{D7A3}').contains(&c));
    let length = match (korean, name.contains([' ', '\u{3000}'])) {
        (true, _) => 3..=4,
        (false, true) => 2..=9,
        (false, false) => 2..=3,
    };
    length.contains(&count)
        && !name.chars().skip(1).any(|c| OF_WORDS.contains(c))
        && !WORDS.iter().any(|word| name.starts_with(word))
}

/// The name of a family in a field of its own: a word or two with capitals that is no type, no state and nobody's in examples.
fn family_name(value: &[u8]) -> bool {
    const NOBODY: [&str; 21] = [
        "bloggs",
        "faker",
        "invalid",
        "string",
        "text",
        "doe",
        "smith",
        "mustermann",
        "last",
        "surname",
        "nachname",
        "true",
        "false",
        "null",
        "integer",
        "value",
        "family",
        "lastname",
        "optional",
        "unknown",
        "number",
    ];
    let Ok(text) = std::str::from_utf8(value) else {
        return false;
    };
    let small = |word: &&str| !PARTICLES.contains(&word.to_lowercase().as_str());
    let words = || text.split([' ', '-']).filter(small);
    let known = |word: &str| {
        let low = word.to_lowercase();
        NOBODY.contains(&low.as_str()) || is_no_name(&low) || LABELS.contains(&low.as_str())
    };
    (1..=3).contains(&words().count())
        && words().all(|word| is_named(word) && word.chars().count() > 2 && !known(word))
}

/// `lkeane at wp dot pl`, and not `look at this dot com bubble`.
fn told_address(value: &[u8]) -> bool {
    const WORDS: [&[u8]; 14] = [
        b"this", b"that", b"the", b"these", b"those", b"each", b"every", b"our", b"your", b"its",
        b"any", b"some", b"which", b"another",
    ];
    let lower = value.to_ascii_lowercase();
    let behind = memchr::memmem::find(&lower, b" at ").map(|at| &lower[at + 4..]);
    let host = behind.and_then(|rest| rest.split(|b| *b == b' ').next());
    host.is_none_or(|host| !WORDS.contains(&host))
}

/// Letters of a number are all capitals or all small: `mAK056232` is the name of something.
fn one_case(value: &[u8]) -> bool {
    !(value.iter().any(u8::is_ascii_uppercase) && value.iter().any(u8::is_ascii_lowercase))
}

/// Letters and digits of a booking, and no word in capitals (`STATUS`).
fn locator(value: &[u8]) -> bool {
    const WORDS: [&[u8]; 6] = [b"NGTH", b"RING", b"IGHT", b"RIPT", b"RECT", b"PTCH"];
    let vowels = value.iter().filter(|b| b"AEIOUY".contains(b)).count();
    let digits = value.iter().any(u8::is_ascii_digit);
    let letters = value.iter().any(u8::is_ascii_alphabetic);
    letters && (digits || vowels <= 1 && !WORDS.iter().any(|end| value.ends_with(end)))
}

/// Is a word written as names are: a capital where the script has them, letters, and signs of names between them?
fn is_named(word: &str) -> bool {
    let mut chars = word.chars();
    let first = chars
        .next()
        .is_some_and(|c| c.is_alphabetic() && !c.is_lowercase());
    let sign = |c: char| {
        matches!(c, '-' | '\'' | '’' | '\u{200C}') || ('\u{900}'..='\u{DFF}').contains(&c)
    };
    let all = word.chars().all(|c| c.is_alphabetic() || sign(c));
    // `API`, `HTTPClient`; but `McKee`, `O'Neil`.
    let capitals = word.chars().filter(|c| c.is_uppercase()).count();
    let count = word.chars().count();
    let joined = word.chars().filter(|c| sign(*c)).count();
    first
        && all
        && (2..=LETTERS_MAX).contains(&count)
        && capitals <= 2 + joined
        && !(capitals == count && count < 4)
}

#[cfg(test)]
mod tests {
    use super::super::check_passes;

    #[test]
    fn names_are_told_from_what_firms_have() {
        for name in [
            "Latoya Norwood",
            "Przemysław Wiśniewski",
            "Jan van der Berg",
            "Fiona McKee",
            "Siobhan O'Neil",
            "Людмила Воробьёва",
            "Anna-Lena Krüger",
            "Thomas J. Becker",
        ] {
            assert!(check_passes("given-name", name), "{name}");
        }
        for name in ["Brannagh Tolliver", "Zwentibold Grünspan"] {
            assert!(check_passes("person-name", name), "{name}");
        }
        for name in [
            "Success Manager",
            "Safety Network",
            "Hello Retry",
            "Deutsche Telekom AG Bonn Nord",
            "John Smith",
            "API Key",
            "Relationship",
            "Stock Purchase Plan",
            "der Kunde",
            "HTTP Client",
            "Siemens Energy",
            "Peter",
        ] {
            assert!(!check_passes("given-name", name), "{name}");
            assert!(
                !check_passes("person-name", name) || name.starts_with("Deutsche"),
                "{name}"
            );
        }
    }

    #[test]
    fn names_under_labels() {
        for (check, value, is) in [
            ("name-in-a-field", "HOLLOWAY, MARGARET J", true),
            ("name-in-a-field", "Margaret Holloway", true),
            ("name-in-a-field", "Nguyễn Thị Hoa", true),
            ("name-in-a-field", "Сергеев Павел Игоревич", true),
            ("name-in-a-field", "Jana Dvořáková", true),
            ("name-in-a-field", "M. Holloway", false),
            ("name-in-a-field", "API KEY", false),
            ("name-in-a-field", "שם מלא", false),
            ("name-in-a-field", "Visual Studio Code", false),
            ("name-in-a-field", "John Doe", false),
            ("name-in-a-field", "octocat/hello-world", false),
            ("given-in-a-field", "Thiago Nascimento", true),
            ("given-in-a-field", "Ελένη Παππά", true),
            ("given-in-a-field", "Amazon Elastic Beanstalk", false),
            ("given-in-a-field", "Сергеев Павел Игоревич", true),
            ("given-in-a-field", "Московский Кремль", false),
            ("given-in-a-field", "フル ネーム", false),
            ("cjk-name", "陈晓敏", true),
            ("cjk-name", "王伟先生", true),
            ("cjk-name", "山本 彩花", true),
            ("cjk-name", "김서연", true),
            ("cjk-name", "王者荣耀", false),
            ("cjk-name", "高级", false),
            ("cjk-name", "漢字 フリガナ", false),
            ("family-name", "Efternamn", false),
            ("family-name", "Holloway", true),
            ("family-name", "van den Broek", true),
            ("family-name", "Benavides Ortega", true),
            ("family-name", "String", false),
            ("family-name", "Doe", false),
            ("family-name", "holloway", false),
            ("told-address", "lkeane77 at wp dot pl", true),
            ("told-address", "look at this dot com", false),
            ("one-case", "AK056232", true),
            ("one-case", "mAK056232", false),
        ] {
            assert_eq!(check_passes(check, value), is, "{check} {value}");
        }
    }

    #[test]
    fn names_that_no_list_has() {
        for (name, person, no_firm) in [
            ("Thandeka Mokoena", true, true),
            ("Zwentibold Grünspan", true, true),
            ("Grünspan, Zwentibold", true, true),
            ("Oyelaran Holloway", true, true),
            ("Margaret Baker", true, true),
            ("Zwentibold Waters", true, false),
            ("Visual Studio", false, false),
            ("Kubernetes Operator", false, false),
            ("Contoso Retail", false, false),
            ("Goldman Sachs", false, false),
            ("Deutsche Telekom", false, false),
            ("Lorem Ipsum", false, false),
            ("Los Angeles", false, false),
            ("Sri Lanka", false, false),
            ("Datos Personales", false, false),
            ("Spotify Technology", false, false),
            ("Guest Name", false, false),
            ("thandeka mokoena", false, false),
            ("Thandeka", false, false),
        ] {
            assert_eq!(check_passes("unlisted-name", name), person, "{name}");
            let firm = check_passes("unlisted-name-of-no-firm", name);
            assert_eq!(firm, no_firm, "{name}");
        }
    }

    #[test]
    fn a_locator_is_no_word() {
        for code in ["X7K2PL", "DHDCHL", "AMMBBT", "99W2BJ"] {
            assert!(check_passes("locator", code), "{code}");
        }
        for code in ["STATUS", "NUMBER", "LENGTH", "123456", "FORMAT"] {
            assert!(!check_passes("locator", code), "{code}");
        }
    }

    #[test]
    fn given_names_are_words() {
        for list in [super::GIVEN, super::NO_NAMES] {
            let words = list.split_ascii_whitespace();
            assert!(words.is_sorted(), "they are looked for by their order");
        }
        let names: Vec<&str> = super::GIVEN.split_ascii_whitespace().collect();
        assert!(names.len() > 1000);
        assert!(
            names
                .iter()
                .all(|w| w.chars().count() >= 3 && **w == w.to_lowercase())
        );
        assert!(names.iter().all(|name| super::is_given(name)));
        assert!(!super::is_given("zwentibold") && !super::is_given(""));
    }
}
