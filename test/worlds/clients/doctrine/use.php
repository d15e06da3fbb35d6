<?php
require 'manager.php';
require 'SnowflakeGenerator.php';
require 'Invoice.php';

use App\Entity\Invoice;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\Tools\SchemaTool;

#[ORM\Entity, ORM\Table(name: 'customer')]
class OldCustomer
{
    #[ORM\Id, ORM\GeneratedValue, ORM\Column(type: 'integer')]
    public ?int $id = null;
    #[ORM\Column]
    public string $name = '';
}

#[ORM\Entity, ORM\Table(name: 'customer')]
class Customer
{
    #[ORM\Id, ORM\GeneratedValue(strategy: 'CUSTOM')]
    #[ORM\CustomIdGenerator(class: App\SnowflakeGenerator::class)]
    #[ORM\Column(type: 'bigint', options: ['default' => 'snowflake_nextval()'])]
    public ?int $id = null;
    #[ORM\Column]
    public string $name = '';
}

function useEntity($class)
{
    $em = manager();
    $entities = [];
    for ($i = 0; $i < 100; $i++) {
        $entity = new $class;
        $entity->name = "$i";
        $em->persist($entity);
        $entities[] = $entity;
    }
    $em->flush();
    $em->clear();
    $right = array_filter($entities, fn ($e) => $em->find($class, $e->id)->name === $e->name);
    same(count($right), 100, "$class: each entity has its ID");
    return end($entities)->id;
}

function changes($class)
{
    $em = manager();
    $metadata = [$em->getClassMetadata($class)];
    return (new SchemaTool($em))->getUpdateSchemaSql($metadata);
}

$em = manager();
(new SchemaTool($em))->createSchema([$em->getClassMetadata(OldCustomer::class)]);
ok(useEntity(OldCustomer::class) < 1000000, 'old keys are small');
$em->getConnection()->fetchFirstColumn("SELECT snowflake_convert('customer', generator => 'snowflake_nextval()')");
ok(useEntity(Customer::class) > 10 ** 18, 'new keys are snowflake IDs');
$differences = array_filter(changes(Customer::class), fn ($sql) => preg_match('/customer|snowflake_/', $sql));
same(array_values($differences), [], 'a converted table has no difference');

(new SchemaTool($em))->createSchema([$em->getClassMetadata(Invoice::class)]);
ok(useEntity(Invoice::class) > 10 ** 18, 'a new table has snowflake IDs');
$invoice = $em->getConnection()->fetchOne("INSERT INTO invoice (name) VALUES ('by SQL') RETURNING id");
ok($invoice > 10 ** 18, 'by SQL, too', $invoice);
$differences = array_filter(changes(Invoice::class), fn ($sql) => preg_match('/invoice|snowflake_/', $sql));
same(array_values($differences), [], 'and has no difference');
finish();
