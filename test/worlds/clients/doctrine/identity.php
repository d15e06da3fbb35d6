<?php
// IDENTITY after a table was converted, with an application that cannot be changed; and what
// the schema tool creates with snowflake sequences.
require 'manager.php';

use Doctrine\ORM\Mapping as ORM;

#[ORM\Entity, ORM\Table(name: 'counted')]
class Counted
{
    #[ORM\Id, ORM\GeneratedValue(strategy: 'IDENTITY'), ORM\Column(type: 'bigint')]
    public ?int $id = null;
    #[ORM\Column]
    public string $name = '';
}

#[ORM\Entity, ORM\Table(name: 'converted')]
class Converted
{
    #[ORM\Id, ORM\GeneratedValue(strategy: 'IDENTITY'), ORM\Column(type: 'bigint')]
    public ?int $id = null;
    #[ORM\Column]
    public string $name = '';
}

#[ORM\Entity, ORM\Table(name: 'numbered')]
class Numbered
{
    #[ORM\Id, ORM\GeneratedValue(strategy: 'SEQUENCE'), ORM\Column(type: 'bigint')]
    #[ORM\SequenceGenerator(sequenceName: 'numbers', allocationSize: 10)]
    public ?int $id = null;
    #[ORM\Column]
    public string $name = '';
}

#[ORM\Entity, ORM\Table(name: 'color')]
class Color
{
    #[ORM\Id, ORM\GeneratedValue(strategy: 'IDENTITY'), ORM\Column(type: 'integer')]
    public ?int $id = null;
    #[ORM\Column]
    public string $name = '';
}

function add($em, $class)
{
    $entity = new $class;
    $entity->name = 'x';
    $em->persist($entity);
    $em->flush();
    return $entity->id;
}

if ($argv[1] === 'sequences') {
    $em = manager();
    $tool = new Doctrine\ORM\Tools\SchemaTool($em);
    $entities = array_map($em->getClassMetadata(...), [Counted::class, Converted::class, Numbered::class, Color::class]);
    $tool->createSchema($entities);
    same($tool->getUpdateSchemaSql($entities), [], 'the schema tool finds no difference');
    same(add($em, Color::class), 1, 'an integer key stays local');
    $pooled = array_map(fn () => add($em, Numbered::class), range(1, 25));
    ok(min($pooled) > 10 ** 18 && count(array_unique($pooled)) === 25, 'a pooled SEQUENCE gives IDs', $pooled);
    foreach ([Counted::class, Converted::class, Counted::class, Converted::class] as $class) {
        $id = add($em, $class);
        $em->clear();
        ok($id > 10 ** 18 && $em->find($class, $id) !== null, "the ID of the row of $class", $id);
    }
} else {
    fails(fn () => add(manager(), Converted::class), 'an error where no sequence was used');
    $em = manager();
    $counted = add($em, Counted::class);
    same(add($em, Converted::class), $counted, 'and another table\'s number where one was');
}
finish();
