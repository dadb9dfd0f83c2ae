"""The vocabulary of the sandbox's job postings."""

from typing import NamedTuple


class Place(NamedTuple):
    """A place, with a typical salary per year and the language spoken there."""

    city: str
    country: str
    currency: str
    salary: int
    language: str


class Seniority(NamedTuple):
    """A seniority level, with its range of years of experience and its salary factor."""

    level: str
    prefix: str
    years: tuple[int, int]
    factor: float


class Department(NamedTuple):
    """The job titles, duties and skills of a department."""

    titles: tuple[str, ...]
    duties: tuple[str, ...]
    skills: tuple[str, ...]


PLACES = (
    Place("Berlin", "Germany", "EUR", 68_000, "German"),
    Place("München", "Germany", "EUR", 74_000, "German"),
    Place("Paris", "France", "EUR", 62_000, "French"),
    Place("Lyon", "France", "EUR", 54_000, "French"),
    Place("Madrid", "Spain", "EUR", 48_000, "Spanish"),
    Place("Lisboa", "Portugal", "EUR", 42_000, "Portuguese"),
    Place("Amsterdam", "Netherlands", "EUR", 70_000, "English"),
    Place("London", "United Kingdom", "GBP", 64_000, "English"),
    Place("Edinburgh", "United Kingdom", "GBP", 52_000, "English"),
    Place("Zürich", "Switzerland", "CHF", 112_000, "German"),
    Place("Genève", "Switzerland", "CHF", 108_000, "French"),
    Place("New York, NY", "United States", "USD", 128_000, "English"),
    Place("Austin, TX", "United States", "USD", 108_000, "English"),
    Place("Remote (US)", "United States", "USD", 112_000, "English"),
    Place("Toronto, ON", "Canada", "CAD", 98_000, "English"),
    Place("Kraków", "Poland", "PLN", 190_000, "Polish"),
    Place("Malmö", "Sweden", "SEK", 610_000, "Swedish"),
    Place("København", "Denmark", "DKK", 620_000, "Danish"),
    Place("東京 (Tokyo)", "Japan", "JPY", 8_400_000, "Japanese"),
    Place("Bengaluru", "India", "INR", 2_600_000, "English"),
    Place("São Paulo", "Brazil", "BRL", 168_000, "Portuguese"),
)

SENIORITIES = (
    Seniority("intern", "", (0, 0), 0.45),
    Seniority("junior", "Junior", (0, 2), 0.7),
    Seniority("mid", "", (2, 5), 1.0),
    Seniority("mid", "", (3, 5), 1.05),
    Seniority("senior", "Senior", (5, 8), 1.3),
    Seniority("senior", "Senior", (5, 10), 1.35),
    Seniority("lead", "Lead", (7, 12), 1.6),
    Seniority("principal", "Principal", (10, 15), 2.1),
)

EMPLOYMENT_TYPES = ("full_time", "full_time", "full_time", "part_time", "contract", "temporary")

EDUCATION_LEVELS = (
    "",
    "High school diploma",
    "Vocational training",
    "Bachelor's degree",
    "Bachelor's degree",
    "Master's degree",
    "PhD",
)

DEPARTMENTS: dict[str, Department] = {
    "Engineering": Department(
        ("Backend Engineer", "Frontend Engineer", "Data Engineer", "Platform Engineer", "SRE"),
        (
            "design, build and run services that thousands of customers rely on every day",
            "review code and designs with care, and leave systems simpler than they were",
            "take part in an on-call rota that is paid, quiet and taken seriously",
            "measure before optimising, and write down what was learnt",
        ),
        ("Python", "Go", "TypeScript", "PostgreSQL", "Kubernetes", "Terraform", "Kafka"),
    ),
    "Data & Analytics": Department(
        ("Data Analyst", "Analytics Engineer", "Data Scientist", "BI Developer"),
        (
            "turn raw events into tables that people trust",
            "work with teams to choose the few numbers that matter",
            "run experiments and explain their results without jargon",
        ),
        ("SQL", "dbt", "Python", "Looker", "Statistics", "Airflow", "Snowflake"),
    ),
    "Product": Department(
        ("Product Manager", "Product Owner", "Technical Writer"),
        (
            "talk to customers every week and bring back what they need, not what they ask for",
            "keep a roadmap that fits on one page",
            "cut scope until the first version can ship",
        ),
        ("Discovery interviews", "Roadmapping", "Prioritisation", "Clear writing"),
    ),
    "Design": Department(
        ("Product Designer", "UX Researcher", "Brand Designer"),
        (
            "prototype early and test with people who have never seen the product",
            "care for our design system and its accessibility",
        ),
        ("Figma", "Prototyping", "Usability testing", "WCAG 2.2", "Typography"),
    ),
    "Sales": Department(
        ("Account Executive", "Sales Development Representative", "Solutions Consultant"),
        (
            "build a pipeline in a territory of your own",
            "lead demonstrations and answer technical questions honestly",
            "negotiate contracts together with our legal team",
        ),
        ("Salesforce", "Negotiation", "Forecasting", "Public speaking"),
    ),
    "Customer Success": Department(
        ("Customer Success Manager", "Support Specialist", "Implementation Manager"),
        (
            "guide new customers from contract to first value within thirty days",
            "answer tickets with patience and precision",
        ),
        ("Zendesk", "Onboarding", "Conflict resolution", "SQL basics"),
    ),
    "Finance": Department(
        ("Financial Controller", "Payroll Specialist", "FP&A Analyst"),
        (
            "close the books within five working days",
            "prepare budgets and explain variances to people who do not read spreadsheets",
        ),
        ("IFRS", "Excel", "NetSuite", "VAT", "Audit preparation"),
    ),
    "Operations": Department(
        ("Warehouse Supervisor", "Supply Chain Planner", "Facilities Coordinator"),
        (
            "plan shifts and keep people safe",
            "reduce the distance that goods travel, in the hall and on the road",
        ),
        ("SAP", "Lean", "Forklift licence", "Inventory control"),
    ),
    "People": Department(
        ("Recruiter", "HR Business Partner", "Learning & Development Partner"),
        (
            "run hiring processes that candidates recommend even when they are declined",
            "advise managers on feedback, growth and difficult conversations",
        ),
        ("Sourcing", "Employment law", "Interviewing", "Coaching"),
    ),
}

OPENINGS = (
    "We are looking for a colleague who wants to {duty}.",
    "In this role you will {duty}.",
    "Our {department} team in {city} is growing. You will {duty}.",
    "Your first project: {duty}.",
)

BENEFITS = (
    "30 days of paid leave, a pension plan and a yearly learning budget of 1,500.",
    "Private health insurance, flexible hours and two days a week from home.",
    "Equity for everyone, 16 weeks of parental leave, and a bicycle if you want one.",
    "Meal vouchers, public transport ticket, sabbatical after four years.",
)

# The same in all jobs.
BENEFITS_OF_ALL = (
    "<ul><li>A computer &amp; a chair of your choice</li><li>Paid leave for the first day of school"
    "</li><li>&euro;&nbsp;600 a year for lunch, or its worth in your currency</li><li>Training in "
    "working hours</li><li>A savings plan that we match up to 4&nbsp;%</li></ul><p>Some of these "
    "differ by country; ask us about yours.</p>"
)

WORK_AUTHORISATIONS = (
    "Applicants must be authorised to work in {country}.",
    "We sponsor visas for {country} and help with relocation.",
    "No sponsorship is available for this position in {country}.",
)

QUALIFICATIONS = (
    "You have worked in a regulated industry.",
    "You have mentored less experienced colleagues.",
    "You have contributed to open source or to a professional community.",
    "You know what it takes to move a team from one tool to another.",
    "You have worked across at least two time zones.",
)

QUESTIONS = (
    "Are you legally authorised to work in {country}?",
    "Do you speak {language} at a professional level?",
    "Do you have at least {years} years of relevant experience?",
    "Are you willing to come to our office in {city} twice a week?",
    "Have you used {skill} at work?",
    "Can you start within three months?",
)
